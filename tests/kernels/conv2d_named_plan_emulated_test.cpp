// Plans by a name that the library still knows and makes no plan of any more: engines of the fake cuDNN that are such.
// For the emulator alone, since the real library has no engine that is known to be.
#include <cudnn.h>

#include "kernels/conv2d/conv2d.h"
#include "tests/emulator/cudnn_plan.h"
#include "tests/kernels/cuda_support.h"

namespace simclr {
namespace {

using emulator::cudnn::kHungryEngine;
using emulator::cudnn::kUselessEngine;

TEST(Conv2dNamedPlan, IsRefusedWhereItDoesNotFinaliseOrWantsTooMuch) {
  const test::CudaRun run(Precision::kFp32, {});
  CudaExec cuda = run.cuda();
  ASSERT_EQ(cudnnCreate(&cuda.dnn), CUDNN_STATUS_SUCCESS);
  constexpr Conv2dParams kShape{
      .shards = 1, .samples = 2, .in_channels = 8, .out_channels = 8, .height = 4, .width = 4};
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

}  // namespace
}  // namespace simclr
