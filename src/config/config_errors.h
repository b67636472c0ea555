// Collects everything that is wrong with a configuration, so that the user sees all of it at once.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace simclr {

// Where each given key was given: "run.yaml:12" or "--set". A key that is not in it has its default.
using KeyOrigins = std::map<std::string, std::string, std::less<>>;

class Faults {
 public:
  // One line "where: key: text"; where is "file:line", "--set" or "" (a default), key may be "".
  void add(std::string_view where, std::string_view key, std::string_view text);

  bool empty() const { return count_ == 0; }
  bool is_full() const { return count_ >= kMostReported; }  // further faults are counted, their text is not kept

  // Throws Error(kUsage) with all faults, one a line; after kMostReported of them only their number is told.
  void raise_if_any() const;

  static constexpr size_t kMostReported = 20;

 private:
  std::vector<std::string> lines_;  // the first kMostReported
  size_t count_ = 0;
};

// A value as it may stand in a message: control characters shown as "?", cut after `most` bytes.
std::string shown(std::string_view text, size_t most = 60);

// The same for a path, of which the end matters: never cut.
inline std::string shown_path(std::string_view path) {
  return shown(path, path.size());
}

}  // namespace simclr
