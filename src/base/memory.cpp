#include "src/base/memory.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>

namespace simclr {
namespace {

using Path = std::filesystem::path;

// The number behind `name` in a file of lines "name number ...".
std::optional<int64_t> field_of(const Path& file, const std::string& name) {
  std::ifstream stream(file);
  std::string line;
  while (std::getline(stream, line)) {
    std::istringstream words(line);
    std::string key;
    int64_t value = 0;
    if (words >> key && key == name && words >> value) return value;
  }
  return std::nullopt;
}

// The number that a file consists of; nothing for "max".
std::optional<int64_t> number_in(const Path& file) {
  std::ifstream stream(file);
  int64_t value = 0;
  if (stream >> value) return value;
  return std::nullopt;
}

struct GroupFiles {
  const char *limit, *usage, *cache;  // cache: a field of memory.stat
  const char *swap, *with_swap;       // limits of swap alone, of memory and swap together; null: this version has none
};
constexpr GroupFiles kVersion2{"memory.max", "memory.current", "inactive_file", "memory.swap.max", nullptr};
constexpr GroupFiles kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", nullptr,
                               "memory.memsw.limit_in_bytes"};

// Calls visit(folder, files, name) for the group and its parents, up to `mount`. A group that a container
// does not show counts as its mount.
template <typename Visit>
void visit_group(const Path& mount, const Path& group, const GroupFiles& files, const Visit& visit) {
  for (Path at = mount / group.relative_path(), name = group;; at = at.parent_path(), name = name.parent_path()) {
    visit(at, files, name.string());
    if (at == mount || !at.has_relative_path() || at.string().size() <= mount.string().size()) return;
  }
}

// All groups of this process. Lines are "0::/path" (v2) and "5:cpu,memory:/path" (v1).
template <typename Visit>
void visit_groups(const Path& root, const Visit& visit) {
  const Path mount = root / "sys/fs/cgroup";
  std::ifstream stream(root / "proc/self/cgroup");
  for (std::string line; std::getline(stream, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") visit_group(mount, group, kVersion2, visit);
    if (controllers.find(",memory,") != std::string::npos) visit_group(mount / "memory", group, kVersion1, visit);
  }
}

int64_t left_to_groups(const Path& root) {
  int64_t left = std::numeric_limits<int64_t>::max();
  visit_groups(root, [&](const Path& at, const GroupFiles& files, const std::string&) {
    const auto limit = number_in(at / files.limit), usage = number_in(at / files.usage);
    if (!limit || !usage) return;
    const int64_t cache = field_of(at / "memory.stat", files.cache).value_or(0);
    left = std::min(left, std::max<int64_t>(*limit - *usage + cache, 0));
  });
  return left;
}

// 0 for a folder that is not there. Never 0 otherwise.
uint64_t identity_of(const Path& folder) {
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0) return 0;
  return (uint64_t{info.st_dev} << 48) ^ (uint64_t{info.st_ino} << 1) ^ 1;
}

constexpr int64_t kKibibyte = 1024;

}  // namespace

std::vector<MemoryBound> memory_bounds(const Path& root) {
  const auto memory = field_of(root / "proc/meminfo", "MemTotal:");
  if (!memory) return {};
  const int64_t swap = field_of(root / "proc/meminfo", "SwapTotal:").value_or(0) * kKibibyte;
  std::vector<MemoryBound> bounds = {{.bytes = *memory * kKibibyte + swap}};
  visit_groups(root, [&](const Path& at, const GroupFiles& files, const std::string& name) {
    const auto limit = number_in(at / files.limit);
    if (!limit || *limit > bounds.front().bytes) return;
    int64_t bytes = *limit + swap;
    if (files.swap != nullptr) bytes = *limit + std::min(number_in(at / files.swap).value_or(swap), swap);
    if (files.with_swap != nullptr) bytes = std::min(number_in(at / files.with_swap).value_or(bytes), bytes);
    if (bytes < bounds.front().bytes) bounds.push_back({.bytes = bytes, .group = identity_of(at), .name = name});
  });
  return bounds;
}

int64_t available_memory_bytes(const Path& root) {
  const auto machine = field_of(root / "proc/meminfo", "MemAvailable:");
  const int64_t groups = left_to_groups(root);
  if (!machine) return groups == std::numeric_limits<int64_t>::max() ? 0 : groups;
  return std::min(*machine * kKibibyte, groups);
}

int64_t resident_bytes() {
  return field_of("/proc/self/status", "VmRSS:").value_or(0) * kKibibyte;
}

int64_t peak_resident_bytes() {
  return field_of("/proc/self/status", "VmHWM:").value_or(0) * kKibibyte;
}

int64_t anonymous_bytes() {
  return field_of("/proc/self/status", "RssAnon:").value_or(0) * kKibibyte;
}

}  // namespace simclr
