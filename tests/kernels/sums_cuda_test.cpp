// ordered_sum and fingerprint on the GPU against the CPU: additions and integers, so the bits are the same.
#include "kernels/fingerprint/fingerprint.h"
#include "kernels/ordered_sum/ordered_sum.h"
#include "tests/kernels/cuda_support.h"

namespace simclr {
namespace {

template <typename T>
void check_sum(int64_t count, int64_t elements, int64_t stride) {
  const test::CudaRun cuda(Precision::kFp32, {});
  const auto random = test::random_values(count * stride, 3);
  std::vector<T> parts(random.begin(), random.end());
  const test::DeviceArray<T> on_device(parts), sum(static_cast<size_t>(elements));
  ordered_sum(cuda.exec(), on_device.data(), count, stride, elements, sum.data());
  const std::vector<T> found = sum.download();
  ordered_sum(CpuExec{}, parts.data(), count, stride, elements, parts.data());
  parts.resize(elements);
  EXPECT_EQ(found, parts) << count << " parts of " << elements;
}

TEST(OrderedSumCuda, HasTheBitsOfTheCpu) {
  for (const int64_t count : {1, 2, 8, 64, 128, 1024}) {  // as many as train.shards may be
    for (const int64_t elements : {1, 31, 257}) {
      check_sum<float>(count, elements, elements + 3);
      check_sum<double>(count, elements, elements);
    }
  }
}

TEST(FingerprintCuda, IsTheNumberOfTheCpu) {
  const test::CudaRun cuda(Precision::kFp32, {});
  for (const int64_t elements : {1, 33, 100003}) {
    const std::vector<float> values = test::random_values(elements, 5);
    uint64_t expected = 0;
    add_fingerprint(CpuExec{}, values, 11, &expected);
    const test::DeviceArray<float> on_device(values);
    const test::DeviceArray<uint64_t> sum(std::vector<uint64_t>{0});
    add_fingerprint(cuda.exec(), {on_device.data(), on_device.count()}, 11, sum.data());
    EXPECT_EQ(sum.download()[0], expected) << elements << " values";
  }
}

}  // namespace
}  // namespace simclr
