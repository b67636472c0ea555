// How much memory is left, read from folders that look like /proc and /sys.
#include "src/base/memory.h"

#include <gtest/gtest.h>

#include <fstream>
#include <vector>

namespace simclr {
namespace {

class AvailableMemory : public ::testing::Test {
 protected:
  AvailableMemory() : root_(std::filesystem::path(::testing::TempDir()) / "available_memory") {
    std::filesystem::remove_all(root_);
    write("proc/meminfo", "MemTotal:  9000 kB\nMemFree:  10 kB\nMemAvailable:  4000 kB\n");
  }
  ~AvailableMemory() override { std::filesystem::remove_all(root_); }

  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  int64_t available() const { return available_memory_bytes(root_); }

  std::filesystem::path root_;
};

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

TEST_F(AvailableMemory, IsZeroWhereNobodySays) {
  std::filesystem::remove_all(root_);
  EXPECT_EQ(available(), 0);
}

TEST(ResidentMemory, GrowsWithWhatIsTouched) {
  const int64_t before = resident_bytes();
  ASSERT_GT(before, 0);
  const std::vector<char> touched(size_t{64} << 20, 1);
  EXPECT_GE(resident_bytes(), before + (int64_t{60} << 20));
  EXPECT_GE(peak_resident_bytes(), resident_bytes());
}

}  // namespace
}  // namespace simclr
