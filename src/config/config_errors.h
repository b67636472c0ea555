// Collects the errors of a configuration, so that the user sees all of them at once. Also shows the user's text in a
// form that is safe to print.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace simclr {

// Where each given key was given: "run.yaml:12" or "--set". A key that is not in it has its default.
using KeyOrigins = std::map<std::string, std::string, std::less<>>;

class ConfigErrors {
 public:
  // One line "where: key: text"; where is "file:line", "--set" or "" (a default), key may be "".
  void add(std::string_view where, std::string_view key, std::string_view text);

  bool empty() const { return count_ == 0; }
  bool is_full() const { return count_ >= kMaxReported; }  // further errors are counted, their text is dropped

  // Throws Error(kUsage) with the first kMaxReported errors, one per line, and the number of further ones.
  void raise_if_any() const;

  static constexpr size_t kMaxReported = 20;

 private:
  std::vector<std::string> lines_;  // the first kMaxReported
  size_t count_ = 0;
};

// A value as messages show it: control characters as "?", cut after max_bytes.
std::string shown(std::string_view text, size_t max_bytes = 60);

// The same for a path, which is never cut: its end matters.
inline std::string shown_path(std::string_view path) {
  return shown(path, path.size());
}

}  // namespace simclr
