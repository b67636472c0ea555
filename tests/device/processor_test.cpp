// The processor's description, from made-up texts of /proc/cpuinfo.
#include "src/device/processor.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace simclr
