// The suggestion ("did you mean") in messages about unknown keys. Declared in config/key_table.h.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/common/numbers.h"
#include "src/config/key_table.h"

namespace simclr {

namespace {

struct SplitPath {
  std::string_view section, name;
};

SplitPath split(std::string_view path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return {"", path};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

// Edit distance divided by the length of the longer text: 0 for equal texts, 1 for entirely different ones.
double difference(std::string_view a, std::string_view b) {
  const size_t longer = std::max(a.size(), b.size());
  return longer == 0 ? 0.0 : as_double(edit_distance(a, b)) / as_double(longer);
}

// True if a and b have a word in common: "lr" and "base_lr", "batch_size" and "global_batch".
bool have_common_word(std::string_view a, std::string_view b) {
  for (size_t begin = 0; begin < a.size();) {
    const size_t end = std::min(a.find('_', begin), a.size());
    const std::string word = fmt::format("_{}_", a.substr(begin, end - begin));
    if (word.size() > 2 && fmt::format("_{}_", b).find(word) != std::string::npos) return true;
    begin = end + 1;
  }
  return false;
}

// How dissimilar an unknown path and a key are. The name weighs more than the section: train.temperature most likely
// means loss.temperature.
double dissimilarity(const SplitPath& unknown, const SplitPath& key) {
  constexpr double kSectionWeight = 0.25;
  constexpr double kWordInCommon = 0.3;
  constexpr double kDepthWeight = 0.1;
  double name = difference(unknown.name, key.name);
  if (have_common_word(unknown.name, key.name)) name = std::min(name, kWordInCommon);
  const double depth = as_double(std::count(key.section.begin(), key.section.end(), '.'));
  return name + kSectionWeight * difference(unknown.section, key.section) + kDepthWeight * depth;
}

// Every section of every key: "run", "data", "data.synthetic", ...
std::vector<std::string> all_sections() {
  std::vector<std::string> sections;
  for (const Key& key : all_keys()) {
    for (size_t dot = key.path.find('.'); dot != std::string::npos; dot = key.path.find('.', dot + 1)) {
      const std::string section = key.path.substr(0, dot);
      if (std::find(sections.begin(), sections.end(), section) == sections.end()) sections.push_back(section);
    }
  }
  return sections;
}

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);  // row[j]: distance of a's first i characters to b's first j
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];  // of the row above
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replace, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::string nearest_key(std::string_view unknown, bool for_section) {
  std::vector<std::string> candidates;
  if (for_section) candidates = all_sections();
  for (const Key& key : all_keys()) {
    if (!for_section) candidates.push_back(key.path);
  }
  // No key is longer than 200 characters, which bounds the time of the search; all keys are lower case.
  std::string lower(unknown.substr(0, 200));
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c += 'a' - 'A';
  }
  const SplitPath parts = split(lower);
  return *std::min_element(candidates.begin(), candidates.end(), [&](const std::string& a, const std::string& b) {
    return dissimilarity(parts, split(a)) < dissimilarity(parts, split(b));
  });
}

}  // namespace simclr
