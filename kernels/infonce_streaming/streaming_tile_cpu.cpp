// The tile kernels for AVX-512, AVX2 and plain, and which of them this processor runs. Not by target_clones: the shape
// of a block belongs to the registers of the instruction set.
#include "kernels/infonce_streaming/streaming_tile.h"

#include <cmath>
#include <cstring>

#include "kernels/common/parallel.h"
#include "kernels/infonce_common/exp.h"

// The condition of SIMCLR_MULTIVERSION.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(SIMCLR_NO_MULTIVERSION)
#define SIMCLR_TILE_VERSIONS 1
#else
#define SIMCLR_TILE_VERSIONS 0
#endif

namespace simclr::detail {

#if SIMCLR_TILE_VERSIONS
namespace v4 {
constexpr int64_t kVector = 16, kBlockRows = 8;  // 16 of 32 registers
#define SIMCLR_TILE_TARGET __attribute__((target("arch=x86-64-v4")))
#include "kernels/infonce_streaming/streaming_tile_body.h"
#undef SIMCLR_TILE_TARGET
}  // namespace v4

namespace v3 {
constexpr int64_t kVector = 8, kBlockRows = 4;  // 8 of 16 registers
#define SIMCLR_TILE_TARGET __attribute__((target("arch=x86-64-v3")))
#include "kernels/infonce_streaming/streaming_tile_body.h"
#undef SIMCLR_TILE_TARGET
}  // namespace v3
#endif

namespace plain {
constexpr int64_t kVector = 4, kBlockRows = 4;
#define SIMCLR_TILE_TARGET
#include "kernels/infonce_streaming/streaming_tile_body.h"
#undef SIMCLR_TILE_TARGET
}  // namespace plain

namespace {

constexpr TileKernels kVersions[] = {
#if SIMCLR_TILE_VERSIONS
    {"AVX-512", v4::sum_exponentials, v4::weights, v4::similarities, v4::accumulate},
    {"AVX2", v3::sum_exponentials, v3::weights, v3::similarities, v3::accumulate},
#endif
    {"plain", plain::sum_exponentials, plain::weights, plain::similarities, plain::accumulate},
};

size_t fastest() {
#if SIMCLR_TILE_VERSIONS
  if (__builtin_cpu_supports("x86-64-v4")) return 0;
  if (__builtin_cpu_supports("x86-64-v3")) return 1;
  return 2;
#else
  return 0;
#endif
}

}  // namespace

std::span<const TileKernels> tile_kernels() {
  static const size_t first = fastest();
  return std::span(kVersions).subspan(first);
}

}  // namespace simclr::detail
