// Engines that the library knows and makes no plan of: by name, and where it has no others. For the emulator alone,
// since the real library has no engine that is known to be such.
#include <cudnn.h>

#include <cstdio>
#include <cstdlib>

#include "emulator/cudnn_plan.h"
#include "kernels/conv2d/conv2d.h"
#include "tests/kernels/cuda_support.h"

namespace simclr {
namespace {

using emulator::cudnn::kHungryEngine;
using emulator::cudnn::kUselessEngine;

constexpr Conv2dParams kShape{.shards = 1, .samples = 2, .in_channels = 8, .out_channels = 8, .height = 4, .width = 4};

TEST(Conv2dNamedPlan, IsRefusedWhereItDoesNotFinalizeOrRequiresTooMuch) {
  const test::CudaRun run(Precision::kFp32, {});
  CudaExec cuda = run.cuda();
  ASSERT_EQ(cudnnCreate(&cuda.dnn), CUDNN_STATUS_SUCCESS);
  const std::string own = make_conv2d_plan(cuda, kShape)->choice();
  for (const int64_t engine : {kUselessEngine, kHungryEngine}) {
    const std::string name = fmt::format("engine {} knobs", engine);
    const std::string choice = name + own.substr(own.find(';'));  // the forward pass; the others as they were
    EXPECT_THAT(
        [&] { make_conv2d_plan(cuda, kShape, choice); },
        testing::Throws<Error>(testing::AllOf(
            testing::Property(&Error::code, ExitCode::kDevice),
            testing::Property(&Error::what,
                              testing::AllOf(testing::HasSubstr("makes no plan of '" + name + "'"),
                                             testing::HasSubstr("for the convolution forward fp32 [2, 4, 4, "))))));
  }
  EXPECT_EQ(cudnnDestroy(cuda.dnn), CUDNN_STATUS_SUCCESS);
}

// In a process of its own: what the fake offers is settled at its first use.
void make_plan_without_engines() {
  setenv("EMULATOR_CUDNN_ENGINES", "none", 1);
  const test::CudaRun run(Precision::kFp32, {});
  CudaExec cuda = run.cuda();
  if (cudnnCreate(&cuda.dnn) != CUDNN_STATUS_SUCCESS) std::exit(1);
  try {
    make_conv2d_plan(cuda, kShape);
  } catch (const Error& e) {
    std::fputs(e.what(), stderr);
    std::exit(static_cast<int>(e.code()));
  }
}

TEST(Conv2dPlanDeathTest, SaysWhatWasSeenWhereNoEngineServes) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      make_plan_without_engines(), testing::ExitedWithCode(static_cast<int>(ExitCode::kDevice)),
      "no plan for the convolution forward fp32 .2, 4, 4, [0-9]+. -> [0-9]+ channels, .*: of 3 engine configurations 1 "
      "fail the filters");
}

}  // namespace
}  // namespace simclr
