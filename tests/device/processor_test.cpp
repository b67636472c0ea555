// The processor's description, from made-up texts of /proc/cpuinfo.
#include "src/device/processor.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace simclr {
namespace {

TEST(Processor, ReadsModelAndInstructionSets) {
  EXPECT_EQ(describe_cpuinfo(
                "processor\t: 0\nmodel name\t: Fast CPU\nflags\t\t: fpu avx2 fma avx512fake\n\nmodel name\t: other\n"),
            "Fast CPU, fma avx2");
  EXPECT_EQ(describe_cpuinfo("CPU implementer\t: 0x41\nCPU part\t: 0xd40\nFeatures\t: asimd sve\n"),
            "implementer 0x41 part 0xd40, asimd sve");
  EXPECT_EQ(describe_cpuinfo(""), "implementer  part , no known vector instructions");
  EXPECT_EQ(processor_model(), processor_model());
}

// oneDNN reads the limit once, so each in a process of its own.
TEST(SlowConvolutionsDeathTest, AreReportedWithTheReason) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  if (processor_model().find("avx2") == std::string::npos) GTEST_SKIP() << "no AVX2 that a limit could hide";
  const auto warning_with = [](const char* limit) {
    ::setenv("DNNL_MAX_CPU_ISA", limit, 1);
    std::fprintf(stderr, "[%s]", slow_convolutions_warning().c_str());
    std::_Exit(0);
  };
  EXPECT_EXIT(warning_with("AVX"), testing::ExitedWithCode(0),
              "\\[DNNL_MAX_CPU_ISA=AVX hides its AVX2: a training step takes about 1.6 times");
  EXPECT_EXIT(warning_with("SSE41"), testing::ExitedWithCode(0), "\\[DNNL_MAX_CPU_ISA=SSE41 hides its AVX2");
  EXPECT_EXIT(warning_with("ALL"), testing::ExitedWithCode(0), "\\[\\]");
}

}  // namespace
}  // namespace simclr
