#include "src/base/memory.h"

#include <fmt/format.h>

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
};
constexpr GroupFiles kVersion2{"memory.max", "memory.current", "inactive_file"};
constexpr GroupFiles kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};

// What is left to the group and to those that it stands in, up to `mount`. A group that a container does not show
// counts as its mount.
int64_t left_to_group(const Path& mount, const Path& group, const GroupFiles& files) {
  int64_t left = std::numeric_limits<int64_t>::max();
  for (Path at = mount / group.relative_path();; at = at.parent_path()) {
    const auto limit = number_in(at / files.limit), usage = number_in(at / files.usage);
    if (limit && usage) {
      const int64_t cache = field_of(at / "memory.stat", files.cache).value_or(0);
      left = std::min(left, std::max<int64_t>(*limit - *usage + cache, 0));
    }
    if (at == mount || !at.has_relative_path() || at.string().size() <= mount.string().size()) return left;
  }
}

// Of all groups of this process. Lines are "0::/path" (v2) and "5:cpu,memory:/path" (v1).
int64_t left_to_groups(const Path& root) {
  const Path mount = root / "sys/fs/cgroup";
  std::ifstream stream(root / "proc/self/cgroup");
  int64_t left = std::numeric_limits<int64_t>::max();
  for (std::string line; std::getline(stream, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") left = std::min(left, left_to_group(mount, group, kVersion2));
    if (controllers.find(",memory,") != std::string::npos)
      left = std::min(left, left_to_group(mount / "memory", group, kVersion1));
  }
  return left;
}

constexpr int64_t kKibibyte = 1024;

}  // namespace

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

}  // namespace simclr
