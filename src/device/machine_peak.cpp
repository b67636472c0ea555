#include "src/device/machine_peak.h"

#include <algorithm>
#include <vector>

#include "kernels/common/gemm.h"
#include "kernels/common/parallel.h"
#include "src/base/progress_line.h"

namespace simclr {
namespace {

constexpr int64_t kSide = 256;                      // three matrices of 256 KiB
constexpr int64_t kFloats = int64_t{1} << 24;       // 64 MiB an array
constexpr int64_t kPiece = int64_t{1} << 16;        // floats of it that a task takes
constexpr int kRounds = 10, kProductsARound = 100;  // about 30 ms a round

template <typename Work>
double best_seconds(Work&& work) {
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    const double begin_s = monotonic_seconds();
    work();
    const double seconds = monotonic_seconds() - begin_s;
    best = round == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

double measure_flops(const CpuExec& exec) {
  constexpr size_t kElements = kSide * kSide;
  std::vector<float> memory(3 * kElements * static_cast<size_t>(exec.threads), 0.5F);
  const auto matrix = [&](int64_t thread, size_t which) {
    return FloatMatrix{memory.data() + (3 * static_cast<size_t>(thread) + which) * kElements, kSide, kSide, kSide};
  };
  const double seconds = best_seconds([&] {
    parallel_for(exec, exec.threads, [&](int64_t i, int) {
      for (int k = 0; k < kProductsARound; ++k)
        gemm(matrix(i, 0), Op::kNone, matrix(i, 1), Op::kNone, {}, matrix(i, 2));
    });
  });
  return 2.0 * kSide * kSide * kSide * kProductsARound * exec.threads / seconds;
}

double measure_bytes(const CpuExec& exec) {
  std::vector<float> x(kFloats, 1.0F), y(kFloats);
  const double seconds = best_seconds([&] {
    parallel_for(exec, kFloats / kPiece, [&](int64_t piece, int) {
      const float* from = x.data() + piece * kPiece;
      float* to = y.data() + piece * kPiece;
      for (int64_t i = 0; i < kPiece; ++i) to[i] = 1.25F * from[i];
    });
  });
  return 2.0 * sizeof(float) * kFloats / seconds;
}

}  // namespace

MachinePeak measure_machine_peak(const CpuExec& exec) {
  return {.flops_per_s = measure_flops(exec), .bytes_per_s = measure_bytes(exec)};
}

}  // namespace simclr
