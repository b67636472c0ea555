// optimizer_update on CUDA against the CPU: every run of a table in one launch, the flag that stops it, and the check
// for finiteness. What the rules are is tested on the CPU (optimizer_update_test.cpp).
#include <list>
#include <optional>
#include <utility>

#include "kernels/optimizer_update/optimizer_update.h"
#include "tests/kernels/cuda_support.h"

namespace simclr {
namespace {

using test::DeviceArray;

constexpr int64_t kChunk = 4096;  // elements that a block takes at a time
const Exec kCpu = CpuExec{.threads = 1};
const int kGo = 0;

// The same parameters in host memory and on the device, each array with a guard element that no update may touch.
class Parameters {
 public:
  explicit Parameters(const std::vector<int64_t>& lengths) {
    uint32_t seed = 1;
    for (const int64_t n : lengths) {
      Host& h = host_.emplace_back();
      h.w = test::random_values(n + 1, seed++);
      h.grad = test::random_values(n + 1, seed++);
      h.first = test::random_values(n + 1, seed++);
      h.second = test::random_values(n + 1, seed++, 0.0F, 1.0F);
      const bool decay = host_.size() % 2 == 1;
      runs_.push_back({h.w.data(), h.grad.data(), h.first.data(), h.second.data(), n, decay});
      const Device& d = device_.emplace_back(h);
      device_runs_.push_back({d.w.data(), d.grad.data(), d.first.data(), d.second.data(), n, decay});
    }
    table_.upload(device_runs_, lengths.size());
  }
  const std::vector<ParameterRun>& runs() const { return runs_; }
  ParameterTable on_device() const { return {device_runs_, table_.data->data()}; }

  // |device - host| <= bound for everything that an update writes; the guards to the bit.
  void expect_near(double bound) const {
    auto d = device_.begin();
    for (const Host& h : host_) {
      for (const auto& [got, want] : {std::pair(d->w.download(), h.w), std::pair(d->first.download(), h.first),
                                      std::pair(d->second.download(), h.second)}) {
        EXPECT_TRUE(test::within(got, test::widen(want), [&](size_t) { return bound; })) << h.w.size() - 1;
        EXPECT_EQ(got.back(), want.back());
      }
      ++d;
    }
  }
  void set_grad(size_t run, size_t element, float value) {
    Host& h = *std::next(host_.begin(), static_cast<std::ptrdiff_t>(run));
    h.grad[element] = value;
    std::next(device_.begin(), static_cast<std::ptrdiff_t>(run))->grad.upload(h.grad);
  }

 private:
  struct Host {
    std::vector<float> w, grad, first, second;
  };
  struct Device {
    explicit Device(const Host& h) : w(h.w), grad(h.grad), first(h.first), second(h.second) {}
    DeviceArray<float> w, grad, first, second;
  };
  struct Table {
    void upload(const std::vector<ParameterRun>& runs, size_t count) {
      data.emplace(count);
      data->upload(runs);
    }
    std::optional<DeviceArray<ParameterRun>> data;
  };
  std::list<Host> host_;
  std::list<Device> device_;
  std::vector<ParameterRun> runs_, device_runs_;
  Table table_;
};

const std::vector<int64_t> kLengths = {1, 31, 33, 127, kChunk - 1, kChunk, kChunk + 1, 3 * kChunk + 5, 1, 20000};

// Values of order 1 and a handful of roundings on each side: 1e-6 is 16 units roundoff.
TEST(OptimizerUpdateCuda, SgdAgreesWithTheCpu) {
  const test::CudaRun run(Precision::kFp32, {});
  const DeviceArray<int> go(std::vector<int>{0});
  for (const bool nesterov : {false, true}) {
    Parameters p(kLengths);
    const SgdUpdate how{.lr = 0.3F, .momentum = 0.9F, .weight_decay = 0.01F, .nesterov = nesterov};
    for (int step = 0; step < 2; ++step) {
      sgd_update(kCpu, p.runs(), how, &kGo);
      sgd_update(run.exec(), p.on_device(), how, go.data());
    }
    p.expect_near(1e-6);
  }
}

// The step m / sqrt(v) is of order 10 at most here (v >= 0.1 * 0.001), times lr = 0.01.
TEST(OptimizerUpdateCuda, AdamWAgreesWithTheCpu) {
  const test::CudaRun run(Precision::kFp32, {});
  const DeviceArray<int> go(std::vector<int>{0});
  for (const int64_t t : {1, 2, 1000}) {
    Parameters p(kLengths);
    const AdamWUpdate how{.lr = 0.01F, .beta1 = 0.9F, .beta2 = 0.999F, .eps = 1e-3F, .weight_decay = 0.1F, .t = t};
    adamw_update(kCpu, p.runs(), how, &kGo);
    adamw_update(run.exec(), p.on_device(), how, go.data());
    p.expect_near(1e-6);
  }
}

// One run is not adapted, one has no norm; the rates to the bit, as both devices compute them in double.
TEST(OptimizerUpdateCuda, LarsAgreesWithTheCpu) {
  const test::CudaRun run(Precision::kFp32, {});
  const DeviceArray<int> go(std::vector<int>{0});
  Parameters p(kLengths);
  const size_t count = kLengths.size();
  std::vector<double> squares;
  for (size_t k = 0; k < 2 * count; ++k) squares.push_back(k == 3 ? 0.0 : 0.37 * static_cast<double>(k + 1));
  std::vector<float> rates(count);
  const DeviceArray<double> device_squares(squares);
  const DeviceArray<float> device_rates(count);
  const LarsUpdate how{.lr = 0.3F, .momentum = 0.9F, .weight_decay = 0.01F, .trust_coefficient = 0.7F};
  for (int step = 0; step < 2; ++step) {
    lars_update(kCpu, p.runs(), how, squares.data(), rates.data(), &kGo);
    lars_update(run.exec(), p.on_device(), how, device_squares.data(), device_rates.data(), go.data());
  }
  EXPECT_TRUE(test::same_bits(device_rates.download(), rates));
  EXPECT_EQ(rates[3], how.lr);
  p.expect_near(1e-6);
}

// More chunks than an update has blocks: a block takes several of one run and continues in the next.
TEST(OptimizerUpdateCuda, TakesTablesLargerThanTheGrid) {
  const test::CudaRun run(Precision::kFp32, {});
  const DeviceArray<int> go(std::vector<int>{0});
  Parameters p({kChunk * 1100 + 3, 5, kChunk * 7, 9});
  const SgdUpdate how{.lr = 0.3F, .momentum = 0.9F, .weight_decay = 0.01F};
  sgd_update(kCpu, p.runs(), how, &kGo);
  sgd_update(run.exec(), p.on_device(), how, go.data());
  p.expect_near(1e-6);
}

TEST(OptimizerUpdateCuda, SkipLeavesEverythingUntouched) {
  const test::CudaRun run(Precision::kFp32, {});
  const DeviceArray<int> skip(std::vector<int>{1});
  Parameters p({1, 33, kChunk + 1});
  p.set_grad(1, 0, test::kNaN);  // as in the step that is skipped
  sgd_update(run.exec(), p.on_device(), {.lr = 0.3F, .momentum = 0.9F, .weight_decay = 0.01F}, skip.data());
  p.expect_near(0);
  const AdamWUpdate adamw{.lr = 0.1F, .beta1 = 0.9F, .beta2 = 0.99F, .eps = 1e-8F, .t = 1};
  adamw_update(run.exec(), p.on_device(), adamw, skip.data());
  p.expect_near(0);
  const DeviceArray<double> squares(std::vector<double>{1, 2, 3, 4, 5, 6});
  const DeviceArray<float> rates(size_t{3});
  lars_update(run.exec(), p.on_device(), {.lr = 0.3F, .trust_coefficient = 1}, squares.data(), rates.data(),
              skip.data());
  p.expect_near(0);
}

TEST(OptimizerUpdateCuda, NothingToUpdate) {
  const test::CudaRun run(Precision::kFp32, {});
  const DeviceArray<int> go(std::vector<int>{0});
  sgd_update(run.exec(), ParameterTable(std::span<const ParameterRun>{}, nullptr), {.lr = 1}, go.data());
}

template <typename T>
class FlagNonFiniteCuda : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(FlagNonFiniteCuda, Types);

TYPED_TEST(FlagNonFiniteCuda, FindsOneAnywhere) {
  const test::CudaRun run(Precision::kFp32, {});
  constexpr auto kMax = std::numeric_limits<TypeParam>::max();
  constexpr auto kInfinity = std::numeric_limits<TypeParam>::infinity();
  constexpr auto kNaN = std::numeric_limits<TypeParam>::quiet_NaN();
  std::vector<TypeParam> values(1000 * 3 + 77, TypeParam{1});
  values[5] = kMax, values[6] = -kMax, values[7] = std::numeric_limits<TypeParam>::denorm_min(), values[8] = -0.0;
  const auto flag_of = [&] {
    const DeviceArray<TypeParam> on_device(values);
    const DeviceArray<int> flag(std::vector<int>{0});
    flag_non_finite(run.exec(), std::span<const TypeParam>(on_device.data(), on_device.count()), flag.data());
    return flag.download()[0];
  };
  EXPECT_EQ(flag_of(), 0);
  for (const size_t place : {size_t{0}, size_t{31}, size_t{255}, size_t{256}, values.size() - 1}) {
    for (const TypeParam bad : {kNaN, -kNaN, kInfinity, -kInfinity}) {
      const TypeParam good = std::exchange(values[place], bad);
      EXPECT_EQ(flag_of(), 1) << bad << " at " << place;
      values[place] = good;
    }
  }
}

TYPED_TEST(FlagNonFiniteCuda, NeverClears) {
  const test::CudaRun run(Precision::kFp32, {});
  const DeviceArray<TypeParam> values(std::vector<TypeParam>{1, 2, 3});
  const DeviceArray<int> flag(std::vector<int>{1});
  flag_non_finite(run.exec(), std::span<const TypeParam>(values.data(), values.count()), flag.data());
  flag_non_finite(run.exec(), std::span<const TypeParam>{}, flag.data());
  EXPECT_EQ(flag.download()[0], 1);
}

}  // namespace
}  // namespace simclr
