// The real cuDNN without a GPU: it plans for a device that is only described (9.8 or later). So the claim that every
// convolution of the networks has a plan that passes the filters is checked on any machine with the library.
// SIMCLR_PLAN_TABLE=1 prints every plan, not only the summary.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "emulator/tests/cudnn/raw_graph.h"
#include "kernels/conv2d/cudnn_graph.h"
#include "tests/kernels/conv2d/cudnn_plans/device_properties.h"
#include "tests/kernels/conv2d/cudnn_plans/resnet_convolutions.h"

namespace simclr {
namespace {

using cudnn::ConvPass;
using cudnn::ConvPlan;
using cudnn::ConvRequest;
using cudnn::PlanTarget;
using testing::HasSubstr;

constexpr ConvPass kPasses[] = {ConvPass::kForward, ConvPass::kBackwardData, ConvPass::kBackwardFilter};

// The target, or a reason to skip: the keys of the description are not a documented format.
class CudnnPlans : public testing::Test {
 protected:
  void SetUp() override {
    try {
      PlanTarget::from_properties(test::properties_json(test::kH100));
    } catch (const Error& e) {
      GTEST_SKIP() << "THIS cuDNN TAKES NO DESCRIPTION OF A DEVICE, SO NO PLAN WAS CHECKED: " << e.what();
    }
  }
  static PlanTarget target(const test::GpuModel& gpu) {
    return PlanTarget::from_properties(test::properties_json(gpu));
  }
  // 64 -> 64 channels, 3x3, on 64 feature maps of 32x32.
  static ConvRequest usual(ConvPass pass, Precision precision) {
    return {pass, precision, {.samples = 64, .in_channels = 64, .out_channels = 64, .height = 32, .width = 32}};
  }
};

struct Case {
  test::GpuModel gpu;
  Precision precision;
};

class EveryConvolution : public CudnnPlans, public testing::WithParamInterface<Case> {};

std::vector<test::LayerShape> all_layers() {
  std::vector<test::NetworkShape> networks;
  for (const bool imagenet_stem : {false, true})
    for (const int64_t size : {32, 96, 224})
      for (const int64_t width : {32, 64})
        for (const int64_t samples : {64, 128})
          if (width == 64 || samples == 64) networks.push_back({imagenet_stem, size, width, samples});
  networks.push_back({.image_size = 32, .bottlenecks = true});  // ResNet-50 on CIFAR-10 and on ImageNet
  networks.push_back({.imagenet_stem = true, .image_size = 224, .bottlenecks = true});
  networks.push_back({.image_size = 9, .width = 8, .samples = 2, .bottlenecks = true});
  networks.push_back({.image_size = 32, .width = 8, .samples = 4});  // and some that fit nothing well
  networks.push_back({.image_size = 33, .width = 24, .samples = 3});
  networks.push_back({.imagenet_stem = true, .image_size = 65, .width = 16, .samples = 1});
  return test::distinct_convolutions(networks);
}

TEST_P(EveryConvolution, HasAPlanThatPassesTheFilters) {
  const auto [gpu, precision] = GetParam();
  const PlanTarget device = target(gpu);
  const bool table = std::getenv("SIMCLR_PLAN_TABLE") != nullptr;
  const auto layers = all_layers();
  ASSERT_GT(layers.size(), 3U * 50);
  for (const ConvPass pass : kPasses) {
    int64_t plans = 0, most = 0;
    std::set<std::string> engines;
    for (const auto& layer : layers) {
      if (layer.is_stem && pass == ConvPass::kBackwardData) continue;
      const ConvRequest request{pass, precision, layer.conv};
      const ConvPlan plan = ConvPlan::choose(device, request);
      EXPECT_LE(plan.workspace_bytes(), cudnn::kWorkspaceCap);
      const ConvPlan again = ConvPlan::from_name(device, request, plan.name());
      EXPECT_EQ(again.name(), plan.name());
      EXPECT_EQ(again.workspace_bytes(), plan.workspace_bytes()) << request.text() << ", " << plan.name();
      ++plans;
      most = std::max(most, plan.workspace_bytes());
      engines.insert(plan.name().substr(0, plan.name().find(" knobs")));
      if (table)
        fmt::print("{} | {} | {} | {:.2f} MiB\n", gpu.name, request.text(), plan.name(),
                   static_cast<double>(plan.workspace_bytes()) / (1 << 20));
    }
    const std::string text = ConvRequest{pass, precision, {}}.text();
    fmt::print("{}, {}: {} plans of {} engines, workspace up to {:.1f} MiB\n", gpu.name,
               text.substr(0, text.find(" [")), plans, engines.size(), static_cast<double>(most) / (1 << 20));
  }
}

std::string case_name(const testing::TestParamInfo<Case>& tested) {
  const char* names[] = {"fp32", "tf32", "bf16"};
  return fmt::format("{}_{}", tested.param.gpu.name, names[static_cast<size_t>(tested.param.precision)]);
}

INSTANTIATE_TEST_SUITE_P(OnModels, EveryConvolution,
                         testing::Values(Case{test::kA100, Precision::kFp32}, Case{test::kA100, Precision::kTf32},
                                         Case{test::kA100, Precision::kBf16}, Case{test::kH100, Precision::kFp32},
                                         Case{test::kH100, Precision::kTf32}, Case{test::kH100, Precision::kBf16}),
                         case_name);

// The filters decide: the first entry of the heuristics for this convolution computes on tensor cores, so fp32 and tf32
// get different plans, and the one of tf32 is refused for fp32 by name.
TEST_F(CudnnPlans, Fp32HasNoTensorCores) {
  const PlanTarget device = target(test::kH100);
  for (const ConvPass pass : kPasses) {
    const auto tf32 = ConvPlan::choose(device, usual(pass, Precision::kTf32));
    const auto fp32 = ConvPlan::choose(device, usual(pass, Precision::kFp32));
    EXPECT_NE(tf32.name(), fp32.name());
    EXPECT_THAT([&] { ConvPlan::from_name(device, usual(pass, Precision::kFp32), tf32.name()); },
                testing::ThrowsMessage<Error>(HasSubstr("does not pass the filters")));
    EXPECT_EQ(ConvPlan::from_name(device, usual(pass, Precision::kTf32), fp32.name()).name(), fp32.name());
  }
}

TEST_F(CudnnPlans, AreTheSameEachTime) {
  for (const ConvPass pass : kPasses) {
    const auto first = ConvPlan::choose(target(test::kA100), usual(pass, Precision::kBf16));
    const auto second = ConvPlan::choose(target(test::kA100), usual(pass, Precision::kBf16));
    EXPECT_EQ(first.name(), second.name());
  }
}

// So that the check can fail: a GPU without bfloat16 is refused for bf16, though not for fp32.
TEST_F(CudnnPlans, RefuseBfloat16OnAGpuWithoutIt) {
  const PlanTarget device = target(test::kV100);
  for (const ConvPass pass : kPasses) {
    EXPECT_NO_THROW(ConvPlan::choose(device, usual(pass, Precision::kFp32)));
    EXPECT_THAT([&] { ConvPlan::choose(device, usual(pass, Precision::kBf16)); },
                testing::Throws<Error>(testing::AllOf(
                    testing::Property(&Error::code, ExitCode::kDevice),
                    testing::Property(&Error::what, testing::AllOf(HasSubstr("has no plan for the convolution"),
                                                                   HasSubstr("bf16 [64, 32, 32, 64] -> 64"))))));
  }
}

TEST_F(CudnnPlans, RefuseNamesOfNothing) {
  const PlanTarget device = target(test::kH100);
  const auto request = usual(ConvPass::kForward, Precision::kTf32);
  for (const char* name : {"", "engine", "engine 5", "engine x knobs", "engine 5 knobs 1", "engine 5 knobs 1=2;3=4",
                           "engine 5 knobs 1=2,", "engine 5 knobs1=2"})
    EXPECT_THAT([&] { ConvPlan::from_name(device, request, name); },
                testing::ThrowsMessage<Error>(HasSubstr("does not name a convolution plan")))
        << name;
  EXPECT_THROW(ConvPlan::from_name(device, request, "engine 9999 knobs"), Error);
  EXPECT_THROW(ConvPlan::from_name(device, request, "engine 67 knobs 2=999999"), Error);
}

// Why bf16 has bfloat16 filter gradients: no engine writes float32 ones. Should a later library have one, use it.
TEST_F(CudnnPlans, NoEngineWritesAFloatFilterGradientOfBfloat16) {
  for (const auto gradient : {CUDNN_DATA_FLOAT, CUDNN_DATA_BFLOAT16}) {
    test::Objects objects;
    const auto tensor = [&](const std::vector<int64_t>& d, int64_t id, cudnnDataType_t type) {
      const auto t = test::make_tensor(
          objects, {.dims = d, .strides = {d[1] * d[2] * d[3], 1, d[3] * d[1], d[1]}, .id = id, .type = type});
      EXPECT_EQ(cudnnBackendFinalize(t), CUDNN_STATUS_SUCCESS);
      return t;
    };
    const auto convolution = test::make_convolution(objects, {});
    EXPECT_EQ(cudnnBackendFinalize(convolution), CUDNN_STATUS_SUCCESS);
    const auto operation =
        test::make_operation(objects, test::kFilterPass,
                             {tensor({64, 64, 32, 32}, 1, CUDNN_DATA_BFLOAT16), tensor({64, 64, 3, 3}, 2, gradient),
                              tensor({64, 64, 32, 32}, 3, CUDNN_DATA_BFLOAT16), convolution});
    EXPECT_EQ(cudnnBackendFinalize(operation), CUDNN_STATUS_SUCCESS);
    const auto graph = objects.make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    test::set_object(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
    ASSERT_EQ(cudnnBackendFinalize(graph), CUDNN_STATUS_SUCCESS);
    int64_t offered = 0;
    for (const auto& gpu : {test::kA100, test::kH100})
      for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK}) {
        const auto heuristics = objects.make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
        test::set_object(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
        test::set(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, std::vector{mode});
        const auto json = test::properties_json(gpu);
        const auto device = objects.make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
        test::set(device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                  std::vector<char>(json.c_str(), json.c_str() + json.size() + 1));
        ASSERT_EQ(cudnnBackendFinalize(device), CUDNN_STATUS_SUCCESS);
        test::set_object(heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
        if (cudnnBackendFinalize(heuristics) != CUDNN_STATUS_SUCCESS) continue;
        // Asked without room the library gives an upper bound; what it fills in counts.
        std::vector<test::Handle> configs(100);
        for (auto& config : configs) config = objects.make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
        int64_t count = 0;
        ASSERT_EQ(cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                           100, &count, configs.data()),
                  CUDNN_STATUS_SUCCESS);
        offered += count;
      }
    EXPECT_EQ(offered > 0, gradient == CUDNN_DATA_BFLOAT16) << offered << " engines";
  }
}

TEST(CudnnFilters, AreThoseOfTheDesign) {
  using cudnn::passes_filters;
  const std::vector<cudnnBackendNumericalNote_t> none, tensor_core{CUDNN_NUMERICAL_NOTE_TENSOR_CORE},
      random{CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC},
      reduced{CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION}, down{CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS};
  for (const auto precision : {Precision::kFp32, Precision::kTf32, Precision::kBf16}) {
    EXPECT_TRUE(passes_filters(precision, none));
    EXPECT_FALSE(passes_filters(precision, random));
    EXPECT_FALSE(passes_filters(precision, reduced));
    EXPECT_EQ(passes_filters(precision, tensor_core), precision != Precision::kFp32);
    EXPECT_EQ(passes_filters(precision, down), precision != Precision::kFp32);
  }
}

}  // namespace
}  // namespace simclr
