// How much memory is left and may be had at all, read from folders that look like /proc and /sys.
#include "src/base/memory.h"

#include <gtest/gtest.h>

#include <fstream>
#include <vector>

namespace simclr {
namespace {

class FakeRoot : public testing::Test {
 protected:
  FakeRoot() : root_(std::filesystem::path(testing::TempDir()) / "fake_root") {
    std::filesystem::remove_all(root_);
    write("proc/meminfo", "MemTotal:  9000 kB\nMemFree:  10 kB\nMemAvailable:  4000 kB\nSwapTotal:  0 kB\n");
  }
  ~FakeRoot() override { std::filesystem::remove_all(root_); }

  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  int64_t available() const { return available_memory_bytes(root_); }

  std::filesystem::path root_;
};
using AvailableMemory = FakeRoot;
using MemoryBounds = FakeRoot;

TEST_F(AvailableMemory, IsThatOfTheMachineWithoutGroups) {
  EXPECT_EQ(available(), 4000 * 1024);
}

TEST_F(AvailableMemory, IsWhatTheTightestGroupOfVersion2Leaves) {
  write("proc/self/cgroup", "0::/job/step\n");
  write("sys/fs/cgroup/job/memory.max", "1000000\n");
  write("sys/fs/cgroup/job/memory.current", "600000\n");
  write("sys/fs/cgroup/job/memory.stat", "anon 5\ninactive_file 50000\n");
  write("sys/fs/cgroup/job/step/memory.max", "max\n");
  write("sys/fs/cgroup/job/step/memory.current", "600000\n");
  EXPECT_EQ(available(), 450000);
  write("sys/fs/cgroup/job/step/memory.max", "700000\n");
  EXPECT_EQ(available(), 100000);
  write("sys/fs/cgroup/job/step/memory.current", "800000\n");
  EXPECT_EQ(available(), 0);
}

TEST_F(AvailableMemory, IsWhatAGroupOfVersion1Leaves) {
  write("proc/self/cgroup", "7:cpu,memory:/docker/abc\n1:pids:/docker/abc\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "5\n");
  EXPECT_EQ(available(), 4000 * 1024);  // no limit
  // A container shows its own group as the mount, under another name than /proc says.
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "2000000\n");
  EXPECT_EQ(available(), 1999995);
}

TEST_F(AvailableMemory, IsZeroWithoutASource) {
  std::filesystem::remove_all(root_);
  EXPECT_EQ(available(), 0);
}

TEST_F(MemoryBounds, AreTheHostsMemoryAndSwapWithoutGroups) {
  ASSERT_EQ(memory_bounds(root_).size(), 1u);
  EXPECT_EQ(memory_bounds(root_)[0].bytes, 9000 * 1024) << "whatever is free";
  EXPECT_EQ(memory_bounds(root_)[0].group, 0u);
  write("proc/meminfo", "MemTotal:  9000 kB\nSwapTotal:  500 kB\n");
  EXPECT_EQ(memory_bounds(root_)[0].bytes, 9500 * 1024);
}

TEST_F(MemoryBounds, AreThoseOfEachGroupOfVersion2) {
  write("proc/meminfo", "MemTotal:  9000 kB\nSwapTotal:  1 kB\n");
  write("proc/self/cgroup", "0::/job/step\n");
  write("sys/fs/cgroup/job/memory.max", "1000000\n");
  write("sys/fs/cgroup/job/memory.current", "999999\n");
  write("sys/fs/cgroup/job/memory.swap.max", "24\n");
  write("sys/fs/cgroup/job/step/memory.max", "max\n");
  auto bounds = memory_bounds(root_);
  ASSERT_EQ(bounds.size(), 2u);
  EXPECT_EQ(bounds[1].bytes, 1000024) << "the limit, not what is left of it";
  EXPECT_EQ(bounds[1].name, "/job");
  write("sys/fs/cgroup/job/step/memory.max", "700000\n");
  write("sys/fs/cgroup/job/step/memory.swap.max", "max\n");
  write("sys/fs/cgroup/job/memory.swap.max", "5000000\n");
  bounds = memory_bounds(root_);
  ASSERT_EQ(bounds.size(), 3u);
  EXPECT_EQ(bounds[1].bytes, 701024) << "no more swap than there is";
  EXPECT_EQ(bounds[1].name, "/job/step");
  EXPECT_EQ(bounds[2].bytes, 1001024);
  EXPECT_NE(bounds[1].group, bounds[2].group);
  EXPECT_NE(bounds[1].group, 0u);
}

TEST_F(MemoryBounds, AreThoseOfAGroupOfVersion1) {
  write("proc/meminfo", "MemTotal:  9000 kB\nSwapTotal:  1 kB\n");
  write("proc/self/cgroup", "7:cpu,memory:/docker/abc\n1:pids:/docker/abc\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(memory_bounds(root_).size(), 1u) << "no limit";
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "2000000\n");
  ASSERT_EQ(memory_bounds(root_).size(), 2u);
  EXPECT_EQ(memory_bounds(root_)[1].bytes, 2001024);
  write("sys/fs/cgroup/memory/memory.memsw.limit_in_bytes", "2000100\n");
  EXPECT_EQ(memory_bounds(root_)[1].bytes, 2000100);
}

TEST_F(MemoryBounds, AreNoneWithoutASource) {
  std::filesystem::remove_all(root_);
  EXPECT_TRUE(memory_bounds(root_).empty());
}

TEST(ResidentMemory, GrowsWithWhatIsTouched) {
  const int64_t before = resident_bytes();
  ASSERT_GT(before, 0);
  const int64_t anonymous_before = anonymous_bytes();
  ASSERT_GT(anonymous_before, 0);
  ASSERT_LT(anonymous_before, before);
  const std::vector<char> touched(size_t{64} << 20, 1);
  EXPECT_GE(anonymous_bytes(), anonymous_before + (int64_t{60} << 20));
  EXPECT_GE(resident_bytes(), before + (int64_t{60} << 20));
  EXPECT_GE(peak_resident_bytes(), resident_bytes());
}

}  // namespace
}  // namespace simclr
