// Memory between ranks: seen by all, without a name that outlives a killed rank, and by name where it has to be.
#include "src/comm/shared_memory.h"

#include <dirent.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "kernels/common/error.h"
#include "tests/harness/thread_collectives.h"

namespace simclr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> names_left() {
  std::vector<std::string> names;
  DIR* folder = ::opendir("/dev/shm");
  while (const dirent* entry = folder == nullptr ? nullptr : ::readdir(folder))
    if (std::string(entry->d_name).starts_with(fmt::format("simclr-{}-", ::getpid())))
      names.emplace_back(entry->d_name);
  if (folder != nullptr) ::closedir(folder);
  return names;
}

// Looks for names whenever rank 0 sends something: what stays if it is killed there.
class Watched : public ForwardingCollectives {
 public:
  using ForwardingCollectives::ForwardingCollectives;
  void broadcast(TypedSpan data, int root) override {
    ForwardingCollectives::broadcast(data, root);
    barrier();
    if (names.empty()) names = names_left();
    sent.emplace_back(static_cast<const char*>(data.data));
    barrier();
  }
  std::vector<std::string> names, sent;
};

// Each rank writes its place and reads those of the others.
void expect_shared(Collectives& c, const SharedMemory& memory) {
  ASSERT_TRUE(memory.valid());
  for (int r = 0; r < c.size(); ++r) EXPECT_EQ(memory.data()[r], std::byte{0});
  c.barrier();
  memory.data()[c.rank()] = static_cast<std::byte>(10 + c.rank());
  c.barrier();
  for (int r = 0; r < c.size(); ++r) EXPECT_EQ(memory.data()[r], static_cast<std::byte>(10 + r));
  c.barrier();
}

TEST(SharedMemory, HasNoNameAtAnyTime) {
  run_ranks(3, [](Collectives& c) {
    Watched watched(c);
    expect_shared(c, share_memory(watched, 100));
    EXPECT_THAT(watched.names, IsEmpty());
    EXPECT_THAT(watched.sent,
                ElementsAre(HasSubstr(fmt::format("/proc/{}/fd/", ::getpid())), HasSubstr("/memfd:simclr-")));
  });
}

TEST(SharedMemory, LeavesNoDescriptorOpen) {
  const auto lowest_free = [] {
    const int fd = ::dup(0);
    ::close(fd);
    return fd;
  };
  const int before = lowest_free();
  for (const FoundBy first : {FoundBy::kDescriptor, FoundBy::kName})
    run_ranks(2, [&](Collectives& c) { share_memory(c, 100, first); });
  EXPECT_EQ(lowest_free(), before);
}

TEST(SharedMemory, HasANameWhileItIsPassedOnByName) {
  run_ranks(3, [](Collectives& c) {
    Watched watched(c);
    expect_shared(c, share_memory(watched, 100, FoundBy::kName));
    EXPECT_THAT(watched.names, ElementsAre(watched.sent.at(0).substr(1))) << "else HasNoNameAtAnyTime proves nothing";
    EXPECT_THAT(names_left(), IsEmpty());
  });
}

// Rank 1 gets the number of another process, as in a container of its own, where the number may belong to no process.
class Elsewhere : public ForwardingCollectives {
 public:
  Elsewhere(Collectives& inner, std::string path) : ForwardingCollectives(inner), path_(std::move(path)) {}
  void broadcast(TypedSpan data, int root) override {
    ForwardingCollectives::broadcast(data, root);
    auto* text = static_cast<char*>(data.data);
    if (rank() == 1 && std::strncmp(text, "/proc/", 6) == 0) std::strcpy(text, path_.c_str());
    by_name = by_name || std::strncmp(text, "/simclr-", 8) == 0;
  }
  bool by_name = false;

 private:
  std::string path_;
};

TEST(SharedMemory, GoesByNameWhereProcessesHaveOtherNumbers) {
  const int other = ::memfd_create("simclr-of-another-job", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(other, 4096), 0);
  for (const std::string& path :
       {fmt::format("/proc/self/fd/{}", other), std::string("/proc/1/fd/99999"), std::string("/proc/0/fd/3")})
    run_ranks(3, [&](Collectives& c) {
      Elsewhere elsewhere(c, path);
      expect_shared(c, share_memory(elsewhere, 100));
      EXPECT_TRUE(elsewhere.by_name) << path;
      EXPECT_THAT(names_left(), IsEmpty());
    });
  ::close(other);
}

}  // namespace
}  // namespace simclr
