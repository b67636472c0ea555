// Buffer and Context: alignment, zeroes, accounting, growing scratch, and memory that does not exist.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "src/device/context.h"

namespace simclr {
namespace {

bool is_aligned(const void* p) {
  return reinterpret_cast<uintptr_t>(p) % kBufferAlignment == 0;
}

TEST(Buffer, IsAlignedAndZero) {
  for (const size_t bytes : {1, 255, 256, 257, 5000, 100000}) {
    // Twice, so that the second lot comes from memory that the first has dirtied.
    for (int round = 0; round < 2; ++round) {
      std::vector<Buffer> buffers;
      for (int i = 0; i < 20; ++i) {
        buffers.emplace_back(bytes);
        EXPECT_TRUE(is_aligned(buffers.back().data()));
        EXPECT_EQ(buffers.back().bytes(), bytes);
        const auto all = buffers.back().as<uint8_t>();
        ASSERT_EQ(all.size(), bytes);
        EXPECT_TRUE(std::all_of(all.begin(), all.end(), [](uint8_t v) { return v == 0; }));
      }
      for (const Buffer& buffer : buffers)
        for (volatile uint8_t& v : buffer.as<uint8_t>()) v = 0xFF;  // volatile: written although it is not read
    }
  }
}

TEST(Buffer, CountsWholeElements) {
  EXPECT_EQ(Buffer(12).as<float>().size(), 3U);
  EXPECT_EQ(Buffer(15).as<double>().size(), 1U);
  EXPECT_EQ(Buffer().data(), nullptr);
  EXPECT_EQ(Buffer(0).as<float>().size(), 0U);
}

TEST(Buffer, MovesAndDoesNotCopy) {
  static_assert(!std::is_copy_constructible_v<Buffer> && std::is_nothrow_move_constructible_v<Buffer>);
  Buffer from(64);
  std::byte* memory = from.data();
  const Buffer to = std::move(from);
  EXPECT_EQ(to.data(), memory);
  EXPECT_EQ(to.bytes(), 64U);
  EXPECT_TRUE(from.as<float>().empty());  // NOLINT(bugprone-use-after-move): what is left is an empty buffer
}

TEST(Buffer, SaysWhenThereIsNoMemory) {
  // 2^62 bytes; and the largest counts, whose rounding up to the alignment must not wrap around to nothing.
  for (const size_t bytes :
       {size_t{1} << 62, std::numeric_limits<size_t>::max() - 3, std::numeric_limits<size_t>::max()}) {
    EXPECT_THAT([&] { Buffer buffer(bytes); },
                testing::Throws<Error>(testing::AllOf(
                    testing::Property(&Error::code, ExitCode::kDevice),
                    testing::Property(&Error::what, testing::HasSubstr(std::to_string(bytes) + " bytes")))));
  }
}

TEST(Upload, SendsTheFirstBytesAndNoMore) {
  const auto device = make_cpu_device(1);
  const auto upload = device->make_upload(4);
  std::fill_n(upload->host(), 4, std::byte{7});
  std::vector<std::byte> to(4, std::byte{1});
  upload->start(to.data(), 3);
  EXPECT_EQ(to, (std::vector{std::byte{7}, std::byte{7}, std::byte{7}, std::byte{1}}));
  upload->start(nullptr, 0);
  EXPECT_THAT([&] { upload->start(to.data(), 5); },
              testing::ThrowsMessage<std::exception>(testing::HasSubstr("5 bytes of 4 on the way")));
}

TEST(Context, ReserveGrowsAndNeverShrinks) {
  Context context(3);
  const auto& cpu = std::get<CpuExec>(context.exec());
  EXPECT_EQ(context.threads(), 3);
  EXPECT_EQ(cpu.threads, 3);
  EXPECT_EQ(cpu.workspace_bytes, 0U);
  context.reserve({.workspace_bytes = 1000, .thread_bytes = 300});
  EXPECT_GE(cpu.workspace_bytes, 1000U);
  EXPECT_GE(cpu.thread_scratch_bytes, 300U);
  const auto* workspace = cpu.workspace;
  context.reserve({.workspace_bytes = 10, .thread_bytes = 20});
  EXPECT_EQ(cpu.workspace, workspace);
  EXPECT_GE(cpu.workspace_bytes, 1000U);
  EXPECT_GE(cpu.thread_scratch_bytes, 300U);
  context.reserve({.workspace_bytes = 5000});
  EXPECT_GE(cpu.workspace_bytes, 5000U);
  EXPECT_GE(cpu.thread_scratch_bytes, 300U);
  EXPECT_TRUE(is_aligned(cpu.workspace));
  // Every thread's scratch is aligned and its own to the last byte (the sanitizer build checks the ends).
  for (int t = 0; t < 3; ++t) {
    EXPECT_TRUE(is_aligned(cpu.scratch_of(t)));
    std::fill_n(cpu.scratch_of(t), cpu.thread_scratch_bytes, static_cast<std::byte>(t + 1));
  }
  for (int t = 0; t < 3; ++t) EXPECT_EQ(cpu.scratch_of(t)[cpu.thread_scratch_bytes - 1], static_cast<std::byte>(t + 1));
  std::fill_n(cpu.workspace, cpu.workspace_bytes, std::byte{7});
}

// The bits depend on the instruction set that the library uses, which may be fewer than the processor has.
TEST(Context, NamesTheInstructionSetOfTheLibrary) {
  EXPECT_THAT(Context(1).library_version(),
              ::testing::ContainsRegex("^oneDNN [0-9.]+ with (AVX|SSE)[^,]*, channels in blocks of "));
}

TEST(Context, CountsWhatItHolds) {
  Context context(2);
  EXPECT_EQ(context.allocated_bytes(), 0U);
  const Buffer a = context.allocate(100), b = context.allocate_elements<double>(5);
  EXPECT_EQ(b.bytes(), 40U);
  EXPECT_EQ(context.allocated_bytes(), 140U);
  context.reserve({.workspace_bytes = 512, .thread_bytes = 256});
  EXPECT_EQ(context.allocated_bytes(), 140U + 512 + 2 * 256);
  context.reserve({.workspace_bytes = 1024, .thread_bytes = 512});  // the old ones are gone
  EXPECT_EQ(context.allocated_bytes(), 140U + 1024 + 2 * 512);
  context.reserve({.workspace_bytes = 1, .thread_bytes = 1});
  EXPECT_EQ(context.allocated_bytes(), 140U + 1024 + 2 * 512);
}

TEST(Context, RefusesToHaveNoThreads) {
  for (const int threads : {0, -1}) {
    EXPECT_THAT([&] { Context context(threads); },
                testing::ThrowsMessage<Error>(testing::HasSubstr(fmt::format("at least one thread, got {}", threads))));
  }
}

}  // namespace
}  // namespace simclr
