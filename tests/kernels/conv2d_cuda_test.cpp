// conv2d on CUDA: exact numbers first, then against the CPU's convolution on shapes that do not fit blocks; the same
// bits for any number of shards in a call; the choice of plans as text.
#include "kernels/conv2d/conv2d.h"

#include <cudnn.h>

#include <algorithm>
#include <optional>

#include "kernels/common/ordered_tree.h"
#include "kernels/conv2d/conv2d_ref.h"
#include "tests/kernels/conv2d_support.h"
#include "tests/kernels/cuda_support.h"

namespace simclr {
namespace {

using test::CudaFeatureMaps;
using test::CudaImages;
using test::DeviceArray;
using test::Inputs;
using test::Results;

// A GPU with cuDNN, and scratch memory that starts as NaN.
class CudnnRun {
 public:
  explicit CudnnRun(Precision precision) : run_(precision, {}), cuda_(run_.cuda()) {
    EXPECT_EQ(cudnnCreate(&cuda_.dnn), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cudnnSetStream(cuda_.dnn, cuda_.stream), CUDNN_STATUS_SUCCESS);
  }
  ~CudnnRun() {
    cudaStreamSynchronize(cuda_.stream);
    cudnnDestroy(cuda_.dnn);
  }
  CudnnRun(const CudnnRun&) = delete;
  CudnnRun& operator=(const CudnnRun&) = delete;

  const CudaExec& cuda() const { return cuda_; }
  Exec exec() const { return cuda_; }
  DataType type() const { return cuda_.storage(); }
  void reserve(const ScratchNeed& need) {
    test::expect_success(cudaStreamSynchronize(cuda_.stream), "cudaStreamSynchronize");
    workspace_.emplace(need.workspace_bytes);
    cuda_.workspace = workspace_->data();
    cuda_.workspace_bytes = workspace_->bytes();
  }

 private:
  test::CudaRun run_;
  CudaExec cuda_;
  std::optional<DeviceArray<std::byte>> workspace_;
};

// All three convolutions on outputs and scratch full of NaN.
Results run_on(CudnnRun& gpu, const Conv2dParams& p, const Inputs& in) {
  const auto plan = make_conv2d_plan(gpu.exec(), p);
  gpu.reserve(plan->scratch());
  const Exec exec = gpu.exec();
  const DeviceArray<float> weight(in.weight);
  const DeviceArray<float> grad_weight(in.weight.size());
  const CudaFeatureMaps y(gpu.type(), test::output_shape(p));
  const CudaFeatureMaps grad_y(gpu.type(), test::output_shape(p), in.grad_y);
  Results out;
  if (p.input_is_images) {
    const CudaImages x(gpu.type(), test::input_shape(p), in.x);
    conv2d_forward(exec, *plan, x.view(), weight.data(), y.view());
    conv2d_backward_weights(exec, *plan, x.view(), grad_y.view(), grad_weight.data());
    out.grad_weight = grad_weight.download();  // waits, while x is alive
  } else {
    const CudaFeatureMaps x(gpu.type(), test::input_shape(p), in.x);
    const CudaFeatureMaps grad_x(gpu.type(), test::input_shape(p));
    conv2d_forward(exec, *plan, ConstActivation(x.view()), weight.data(), y.view());
    conv2d_backward_data(exec, *plan, grad_y.view(), weight.data(), grad_x.view());
    conv2d_backward_weights(exec, *plan, ConstActivation(x.view()), grad_y.view(), grad_weight.data());
    out.grad_weight = grad_weight.download();
    EXPECT_TRUE(grad_x.padding_is_zero());
    out.grad_x = grad_x.plain();
  }
  EXPECT_TRUE(y.padding_is_zero());
  out.y = y.plain();
  return out;
}

std::vector<Conv2dParams> cases() {
  std::vector<Conv2dParams> list;
  const auto add = [&](int64_t shards, int64_t samples, int64_t in, int64_t out, int64_t height, int64_t width,
                       int64_t kernel, int64_t stride, bool images = false) {
    list.push_back({.shards = shards,
                    .samples = samples,
                    .in_channels = in,
                    .out_channels = out,
                    .height = height,
                    .width = width,
                    .kernel = kernel,
                    .stride = stride,
                    .padding = kernel / 2,
                    .input_is_images = images});
  };
  add(1, 1, 1, 1, 1, 1, 1, 1);
  add(1, 1, 1, 1, 3, 3, 3, 1);
  add(2, 3, 3, 31, 5, 4, 3, 1);
  add(4, 1, 31, 33, 3, 7, 3, 2);
  add(2, 2, 33, 17, 6, 5, 1, 2);
  add(4, 3, 20, 5, 7, 3, 1, 1);
  add(1, 3, 16, 16, 8, 8, 3, 1);
  add(2, 2, 32, 64, 4, 4, 3, 2);  // even size, stride 2: a row and a column are left over
  add(8, 1, 8, 8, 2, 2, 3, 1);
  add(2, 2, 16, 127, 3, 3, 1, 1);
  add(2, 3, 3, 16, 9, 12, 3, 1, true);
  add(1, 2, 1, 33, 9, 9, 3, 1, true);
  add(2, 1, 3, 31, 16, 19, 7, 2, true);
  return list;
}

struct Case {
  Conv2dParams p;
  Precision precision;
};
std::vector<Case> all_cases() {
  std::vector<Case> list;
  for (const auto& p : cases())
    for (const auto precision : {Precision::kFp32, Precision::kTf32, Precision::kBf16}) list.push_back({p, precision});
  return list;
}
std::string cuda_case_name(const testing::TestParamInfo<Case>& tested) {
  const char* names[] = {"fp32", "tf32", "bf16"};
  return test::case_name({tested.param.p, tested.index}) + (tested.param.p.input_is_images ? "_images_" : "_") +
         names[static_cast<size_t>(tested.param.precision)];
}

class Conv2dCuda : public testing::TestWithParam<Case> {
 protected:
  Conv2dParams p = GetParam().p;
  CudnnRun gpu{GetParam().precision};
};

// Operands -1, 0 and 1, mostly 0: every sum is an integer below 257, exact in bfloat16 and in any order.
TEST_P(Conv2dCuda, IsExactOnSmallIntegers) {
  Inputs in = test::random_inputs(p);
  for (auto* values : {&in.x, &in.weight, &in.grad_y})
    for (float& v : *values) v = v > 0.7F ? 1.0F : v < -0.7F ? -1.0F : 0.0F;
  const Results got = run_on(gpu, p, in);
  const auto x = test::widen(in.x), weight = test::widen(in.weight), grad_y = test::widen(in.grad_y);
  const auto exactly = [](size_t) { return 0x1p-100; };
  EXPECT_TRUE(test::within(got.y, conv2d_ref::forward(p, x, weight), exactly));
  EXPECT_TRUE(test::within(got.grad_weight, conv2d_ref::backward_weights(p, x, grad_y), exactly));
  if (!p.input_is_images) {
    EXPECT_TRUE(test::within(got.grad_x, conv2d_ref::backward_data(p, grad_y, weight), exactly));
  }
}

// Both devices get what the GPU stores. fp32: two sums of n terms, each n u sum|a||b| off at most, usually far less:
// sqrt(n) u, so 1e-6 of the largest. tf32 rounds operands to 2^-11, bf16 results to 2^-9 (weight gradients of each
// shard): 4e-3 and 1e-2 are what is left to a wrong term, which would be of the order of 1.
TEST_P(Conv2dCuda, AgreesWithTheCpu) {
  Inputs in = test::random_inputs(p);
  const DataType type = gpu.type();
  for (auto* values : {&in.x, &in.weight, &in.grad_y}) *values = test::as_stored(type, *values);
  const Results got = run_on(gpu, p, in), want = test::run(p, 2, in);
  const double bound = GetParam().precision == Precision::kFp32 ? 1e-6 : type == DataType::kFloat32 ? 4e-3 : 1e-2;
  EXPECT_LT(test::relative_error(got.y, test::widen(want.y)), bound);
  EXPECT_LT(test::relative_error(got.grad_x, test::widen(want.grad_x)), bound);
  EXPECT_LT(test::relative_error(got.grad_weight, test::widen(want.grad_weight)), bound);
}

// One call of S shards, and S calls of one: what W ranks compute.
TEST_P(Conv2dCuda, BitsDoNotDependOnTheShardsOfACall) {
  const Inputs in = test::random_inputs(p);
  const Results whole = run_on(gpu, p, in);
  Conv2dParams one = p;
  one.shards = 1;
  const auto part = [&](const std::vector<float>& all, int64_t s) {
    const auto each = static_cast<int64_t>(all.size()) / p.shards;
    return std::vector<float>(all.begin() + s * each, all.begin() + (s + 1) * each);
  };
  std::vector<std::vector<float>> gradients;
  for (int64_t s = 0; s < p.shards; ++s) {
    const Results got = run_on(gpu, one, {part(in.x, s), in.weight, part(in.grad_y, s)});
    EXPECT_TRUE(test::same_bits(got.y, part(whole.y, s))) << "shard " << s;
    EXPECT_TRUE(test::same_bits(got.grad_x, part(whole.grad_x, s))) << "shard " << s;
    gradients.push_back(got.grad_weight);
  }
  ordered_tree_sum<float>([&](int64_t s) { return gradients[s].data(); }, p.shards, 0, p.weight_elements());
  EXPECT_TRUE(test::same_bits(gradients[0], whole.grad_weight));
}

// Another rank, or a resumed run, makes the plans that were chosen before.
TEST_P(Conv2dCuda, TakesAChoice) {
  const auto plan = make_conv2d_plan(gpu.exec(), p);
  const std::string choice = plan->choice();
  EXPECT_EQ(std::count(choice.begin(), choice.end(), ';'), p.input_is_images ? 1 : 2) << choice;
  EXPECT_THAT(plan->describe(), testing::HasSubstr(choice));
  const auto again = make_conv2d_plan(gpu.exec(), p, choice);
  EXPECT_EQ(again->choice(), choice);
  EXPECT_EQ(again->scratch().workspace_bytes, plan->scratch().workspace_bytes);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Conv2dCuda, testing::ValuesIn(all_cases()), cuda_case_name);

constexpr Conv2dParams kSmall{.shards = 1, .samples = 2, .in_channels = 8, .out_channels = 8, .height = 4, .width = 4};

// tf32 may use what fp32 has chosen, not the other way round: its engines are on tensor cores.
TEST(Conv2dCudaPlan, OtherChoicesAreOtherPlans) {
  CudnnRun fp32(Precision::kFp32), tf32(Precision::kTf32);
  const std::string plain = make_conv2d_plan(fp32.exec(), kSmall)->choice();
  const std::string fast = make_conv2d_plan(tf32.exec(), kSmall)->choice();
  ASSERT_NE(plain, fast);
  EXPECT_EQ(make_conv2d_plan(tf32.exec(), kSmall, plain)->choice(), plain);
  EXPECT_THAT([&] { make_conv2d_plan(fp32.exec(), kSmall, fast); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("does not pass the filters")));
}

TEST(Conv2dCudaPlan, RefusesChoicesThatAreNone) {
  CudnnRun gpu(Precision::kFp32);
  const std::string own = make_conv2d_plan(gpu.exec(), kSmall)->choice();
  const size_t first = own.find(';'), last = own.rfind(';');
  const auto refused = [&](const std::string& choice, const char* text) {
    EXPECT_THAT([&] { make_conv2d_plan(gpu.exec(), kSmall, choice); },
                testing::Throws<Error>(testing::AllOf(testing::Property(&Error::code, ExitCode::kDevice),
                                                      testing::Property(&Error::what, testing::HasSubstr(text)))))
        << choice;
  };
  refused(own.substr(0, last), "does not name a convolution plan");  // one too few
  refused(own + own.substr(last), "names more plans");
  refused(own.substr(0, first) + "; nonsense" + own.substr(last), "'nonsense' does not name");
}

TEST(Conv2dCudaPlan, ChecksTypesAndScratch) {
  CudnnRun gpu(Precision::kBf16);
  const auto plan = make_conv2d_plan(gpu.exec(), kSmall);
  const CudaFeatureMaps x(gpu.type(), test::input_shape(kSmall));
  const CudaFeatureMaps y(gpu.type(), test::output_shape(kSmall));
  Activation wrong = x.view();
  wrong.data = {wrong.data.address(), DataType::kFloat32};
  EXPECT_THAT([&] { conv2d_forward(gpu.exec(), *plan, ConstActivation(wrong), nullptr, y.view()); },
              test::fires("the device stores"));
  CudaExec without_scratch = gpu.cuda();
  without_scratch.workspace_bytes = 64;
  EXPECT_THAT([&] { conv2d_forward(without_scratch, *plan, ConstActivation(x.view()), nullptr, y.view()); },
              test::fires("bytes of workspace"));
  CudnnRun other(Precision::kBf16);
  other.reserve(plan->scratch());
  EXPECT_THAT([&] { conv2d_forward(other.exec(), *plan, ConstActivation(x.view()), nullptr, y.view()); },
              test::fires("planned for another device"));
}

}  // namespace
}  // namespace simclr
