// Each mistake that a kernel or its caller can make, and who reports it: the emulator itself in every build, or one of
// the sanitizers in the builds with it (SIMCLR_SANITIZE). Where two do, each has its test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "emulator/tests/scenario.h"

namespace simclr::test {

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kAddressSanitizer = true;
#else
constexpr bool kAddressSanitizer = false;
#endif
#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

#define NEEDS_ADDRESS_SANITIZER() \
  if (!kAddressSanitizer) GTEST_SKIP() << "found by AddressSanitizer or UBSan: SIMCLR_SANITIZE=address,undefined"
#define NEEDS_THREAD_SANITIZER() \
  if (!kThreadSanitizer) GTEST_SKIP() << "found by ThreadSanitizer: SIMCLR_SANITIZE=thread"
#define NEEDS_NO_ADDRESS_SANITIZER() \
  if (kAddressSanitizer) GTEST_SKIP() << "AddressSanitizer is first, see its test"

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using Environment = std::vector<std::pair<std::string, std::string>>;

const Environment kForward{{"EMULATOR_ORDER", "forward"}};
const Environment kReverse{{"EMULATOR_ORDER", "reverse"}};
const Environment kLazy{{"EMULATOR_STREAMS", "lazy"}};

// The launch itself was fine, the device is broken after it, and the text says why.
void expect_failed_kernel(const Outcome& outcome, const std::string& kernel, const std::string& why) {
  EXPECT_TRUE(outcome.ended_well());
  EXPECT_THAT(outcome.output, HasSubstr("launch cudaSuccess, sync cudaErrorLaunchFailure"));
  EXPECT_THAT(outcome.output, HasSubstr("cudaErrorLaunchFailure: kernel simclr::test::" + kernel));
  EXPECT_THAT(outcome.output, ContainsRegex(why));
}

// ---- missing barriers ----

TEST(MissingBarrier, ShowsAsNaNFromUnwrittenSharedMemory) {
  EXPECT_THAT(run_scenario("sum_without_barrier", kForward).output, ContainsRegex("value -?nan"));
  // The order decides: backwards thread 0 comes last and all is well.
  EXPECT_THAT(run_scenario("sum_without_barrier", kReverse).output, HasSubstr("value 64"));
}

TEST(MissingBarrier, IsADataRaceInEveryOrder) {
  NEEDS_THREAD_SANITIZER();
  for (const Environment& order : {kForward, kReverse}) {
    const Outcome outcome = run_scenario("sum_without_barrier", order);
    EXPECT_THAT(outcome.output, HasSubstr("data race"));
    EXPECT_THAT(outcome.output, ContainsRegex("broken_kernels.cu:[0-9]+"));
    EXPECT_FALSE(outcome.ended_well());
  }
}

// Write after read: no order gives a wrong value.
TEST(MissingBarrier, BetweenTwoUsesOfOneBufferIsFoundByThreadSanitizerAlone) {
  NEEDS_THREAD_SANITIZER();
  const Outcome outcome = run_scenario("two_sums_one_buffer");
  EXPECT_THAT(outcome.output, HasSubstr("data race"));
  EXPECT_THAT(outcome.output, HasSubstr("sum_and_leave"));
}

TEST(MissingSyncwarp, ShowsAsNaN) {
  EXPECT_THAT(run_scenario("reverse_without_syncwarp", kForward).output, ContainsRegex("value -?nan"));
}

TEST(MissingSyncwarp, IsADataRace) {
  NEEDS_THREAD_SANITIZER();
  const Outcome outcome = run_scenario("reverse_without_syncwarp", kReverse);
  EXPECT_THAT(outcome.output, HasSubstr("data race"));
  EXPECT_THAT(outcome.output, HasSubstr("reverse_kernel"));
}

TEST(MissingAtomic, BetweenBlocksIsADataRace) {
  NEEDS_THREAD_SANITIZER();
  EXPECT_THAT(run_scenario("add_without_atomic", {{"EMULATOR_RACE_BLOCKS", "1"}}).output, HasSubstr("data race"));
  EXPECT_TRUE(run_scenario("add_without_atomic").ended_well());  // only where asked for
}

// ---- barriers and collectives that not all reach ----

TEST(Divergence, OfABarrierNamesBothLines) {
  expect_failed_kernel(run_scenario("divergent_barrier"), "divergent_kernel",
                       "divergent __syncthreads: thread \\(32,0,0\\) at broken_kernels.cu:[0-9]+, others at "
                       "broken_kernels.cu:[0-9]+");
}

TEST(Divergence, ReturnBeforeABarrierNamesTheThread) {
  expect_failed_kernel(run_scenario("return_before_barrier", kForward), "return_kernel",
                       "thread \\(40,0,0\\) returned while others wait in __syncthreads at broken_kernels.cu:[0-9]+");
  expect_failed_kernel(run_scenario("return_before_barrier", kReverse), "return_kernel",
                       "__syncthreads at broken_kernels.cu:[0-9]+ after threads of the block have returned");
}

TEST(Divergence, LanesThatNeverComeAreADeadlock) {
  expect_failed_kernel(run_scenario("mask_of_absent_lanes"), "absent_lanes_kernel",
                       "deadlock: thread \\(0,0,0\\) waits at broken_kernels.cu:[0-9]+;.* 16 of 32 threads have "
                       "returned");
}

TEST(Divergence, AMaskWithoutOneself) {
  expect_failed_kernel(run_scenario("mask_without_oneself"), "without_oneself_kernel", "lane 1 is not in its own mask");
}

TEST(Divergence, DifferentCollectivesOfOneWarp) {
  expect_failed_kernel(run_scenario("different_collectives"), "different_kernel",
                       "lanes of a warp meet in different collectives");
}

TEST(Divergence, OfAMatrixProductIsADeadlock) {
  expect_failed_kernel(run_scenario("product_of_half_a_warp"), "half_warp_product_kernel",
                       "deadlock: thread \\(0,0,0\\) waits at fragment_kernels.cu:[0-9]+");
}

// ---- memory ----

TEST(Fragment, AtAWrongAddress) {
  expect_failed_kernel(run_scenario("misaligned_fragment"), "misaligned_fragment_kernel",
                       "fragment at fragment_kernels.cu:[0-9]+: .* is 16 beyond");
  expect_failed_kernel(run_scenario("wrong_stride_of_fragment"), "misaligned_fragment_kernel", "apart and are 36");
}

TEST(OutOfBounds, BehindDeviceMemoryIsSeenAfterTheKernel) {
  NEEDS_NO_ADDRESS_SANITIZER();
  const Outcome outcome = run_scenario("write_with_offset");
  EXPECT_THAT(outcome.output, HasSubstr("launch cudaSuccess, sync cudaErrorIllegalAddress"));
  EXPECT_THAT(outcome.output, HasSubstr("offset_kernel wrote past the end of its argument 0"));
}

TEST(OutOfBounds, DeviceMemory) {
  NEEDS_ADDRESS_SANITIZER();
  const Outcome outcome = run_scenario("write_with_offset");
  EXPECT_THAT(outcome.output, HasSubstr("heap-buffer-overflow"));
  EXPECT_THAT(outcome.output, HasSubstr("offset_kernel"));
}

TEST(OutOfBounds, DynamicSharedMemory) {
  NEEDS_ADDRESS_SANITIZER();
  const Outcome outcome = run_scenario("write_dynamic_with_offset");
  EXPECT_THAT(outcome.output, HasSubstr("heap-buffer-overflow"));
  EXPECT_THAT(outcome.output, HasSubstr("dynamic_offset_kernel"));
}

TEST(OutOfBounds, StaticSharedMemory) {
  NEEDS_ADDRESS_SANITIZER();
  EXPECT_THAT(run_scenario("write_shared_with_offset").output, HasSubstr("out of bounds for type 'float [64]'"));
}

TEST(Alignment, OfAVector) {
  NEEDS_ADDRESS_SANITIZER();
  EXPECT_THAT(run_scenario("read_misaligned").output, HasSubstr("misaligned address"));
}

TEST(Overflow, OfAnIndex) {
  NEEDS_ADDRESS_SANITIZER();
  EXPECT_THAT(run_scenario("overflow_index").output, HasSubstr("1500000000 * 2 cannot be represented in type 'int'"));
}

TEST(Overflow, OfTheStack) {
  const Outcome outcome = run_scenario("recurse");
  if (kAddressSanitizer) {
    EXPECT_THAT(outcome.output, HasSubstr("stack-overflow"));
  } else {
    EXPECT_FALSE(outcome.ended_well());
    EXPECT_TRUE(outcome.signal == SIGSEGV || kThreadSanitizer);
  }
}

TEST(Unwritten, SharedMemoryIsNaN) {
  const Outcome outcome = run_scenario("read_unwritten_shared");
  EXPECT_THAT(outcome.output, ContainsRegex("value 1\nvalue -?nan"));
}

TEST(Unwritten, DeviceMemoryIsNaN) {
  EXPECT_THAT(run_scenario("read_unwritten_global").output, ContainsRegex("value -?nan"));
}

TEST(Pointer, OfTheHostIsNamed) {
  const Outcome outcome = run_scenario("host_pointer");
  EXPECT_THAT(outcome.output, HasSubstr("launch cudaErrorIllegalAddress"));
  EXPECT_THAT(outcome.output, HasSubstr("offset_kernel: argument 0 points to no memory of the device"));
}

TEST(Pointer, ToFreedMemoryIsNamed) {
  const Outcome outcome = run_scenario("freed_pointer");
  EXPECT_THAT(outcome.output, HasSubstr("launch cudaErrorIllegalAddress"));
  EXPECT_THAT(outcome.output, HasSubstr("argument 0 points to freed device memory of 256 bytes"));
}

TEST(Pointer, PastTheEndIsNamed) {
  const Outcome outcome = run_scenario("pointer_past_the_end");
  EXPECT_THAT(outcome.output, HasSubstr("launch cudaErrorIllegalAddress"));
  EXPECT_THAT(outcome.output, HasSubstr("argument 0 points to the end of device memory of 256 bytes"));
}

TEST(Trap, BreaksTheDeviceUntilItIsReset) {
  const Outcome outcome = run_scenario("call_trap");
  expect_failed_kernel(outcome, "trap_kernel", "__trap at broken_kernels.cu:[0-9]+ by thread \\(5,0,0\\)");
  EXPECT_THAT(outcome.output, HasSubstr("malloc cudaErrorLaunchFailure\n"
                                        "last cudaErrorLaunchFailure, then cudaErrorLaunchFailure\n"
                                        "reset cudaSuccess\n"
                                        "last cudaSuccess, then cudaSuccess\n"
                                        "malloc cudaSuccess\n"));
}

TEST(Trap, DropsWhatWasQueuedBehindIt) {
  const Outcome outcome = run_scenario("work_after_trap", kLazy);
  expect_failed_kernel(outcome, "trap_kernel", "__trap");
  EXPECT_THAT(outcome.output, Not(HasSubstr("called")));
  EXPECT_THAT(outcome.output, HasSubstr("later launch cudaErrorLaunchFailure"));
}

// ---- streams ----

TEST(Streams, AMissingEventIsSeenWhenStreamsRunLate) {
  EXPECT_THAT(run_scenario("missing_event", kLazy).output, ContainsRegex("value -?nan"));
  EXPECT_THAT(run_scenario("missing_event").output, HasSubstr("value 3"));
  EXPECT_THAT(run_scenario("event", kLazy).output, HasSubstr("value 3"));
}

TEST(Streams, APinnedBufferIsReadLate) {
  EXPECT_THAT(run_scenario("pinned_reused", kLazy).output, HasSubstr("value -1"));
  EXPECT_THAT(run_scenario("pageable_reused", kLazy).output, HasSubstr("value 5"));
}

TEST(Streams, AResultReadBeforeTheSyncIsStale) {
  EXPECT_THAT(run_scenario("read_before_sync", kLazy).output, HasSubstr("value 3"));
  EXPECT_THAT(run_scenario("read_before_sync").output, HasSubstr("value 1"));
}

TEST(Streams, CudaMemcpyDoesNotWaitForNonBlockingStreams) {
  EXPECT_THAT(run_scenario("memcpy_does_not_wait", kLazy).output, HasSubstr("value 0"));
  EXPECT_THAT(run_scenario("memcpy_waits_for_blocking", kLazy).output, HasSubstr("value 1"));
}

TEST(Streams, PollsComeToAnEnd) {
  EXPECT_THAT(run_scenario("poll", kLazy).output, HasSubstr("polls 4, last cudaErrorNotReady\nvalue 8"));
  EXPECT_THAT(run_scenario("poll").output, HasSubstr("polls 1, last cudaSuccess\nvalue 8"));
}

TEST(Streams, TheDefaultStreamAndDeadStreamsAreRefused) {
  Outcome outcome = run_scenario("default_stream");
  EXPECT_THAT(outcome.output, HasSubstr("launch cudaErrorInvalidResourceHandle"));
  EXPECT_THAT(outcome.output, HasSubstr("kernel launch: the default stream"));
  outcome = run_scenario("destroyed_stream");
  EXPECT_THAT(outcome.output, HasSubstr("launch cudaErrorInvalidResourceHandle"));
  EXPECT_THAT(outcome.output, HasSubstr("kernel launch: no such stream"));
}

}  // namespace

}  // namespace simclr::test
