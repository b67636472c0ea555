// The one list of all configuration keys: path, member of Settings, type, unit, range, and whether the key affects the
// mathematics of a run. Loader, --set, --print-config, hash, nearest-key search and tests all iterate over it.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "src/config/scalar.h"
#include "src/config/settings.h"

namespace simclr {

// An interval of numbers; for a list it applies to each element.
struct ValueRange {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;   // low itself is not allowed
  bool high_open = false;  // high itself is not allowed

  bool contains(double value) const;
  std::string text() const;  // "1..1024", ">= 0", "> 0, <= 1", "" without a limit
};

// Whether a change of the key changes the numbers of a run, for the same images on the same machine.
enum class KeyEffect { kMathematics, kExecution };

struct Key {
  std::string path;      // "train.global_batch"
  std::string expected;  // type and range: "integer 2..1048576", "sgd | adamw", "list of 2 numbers > 0"
  std::string unit;      // "images", "seconds", ...; "" = a pure number or none
  KeyEffect effect = KeyEffect::kMathematics;

  // Stores the value if its type is right, and returns ""; else returns what is wrong.
  std::function<std::string(const ConfigValue&, Settings&)> assign;
  // What is wrong with the range of the stored value; "" if nothing.
  std::function<std::string(const Settings&)> check;
  // The stored value as one line of YAML; assign() of it restores the value.
  std::function<std::string(const Settings&)> print;

  // "integer 2..1048576, images": how reference.yaml and messages describe the key.
  std::string description() const { return unit.empty() ? expected : expected + ", " + unit; }
};

// In the order of the structs; the keys of a section are consecutive.
const std::vector<Key>& all_keys();

// The key with this path; nullptr if there is none.
const Key* find_key(std::string_view path);

// True for "train", "views.jitter", ...
bool is_section(std::string_view path);

// The key (for_section: the section) most similar to an unknown path: edit distances of last part and section.
std::string nearest_key(std::string_view unknown, bool for_section = false);

// The least number of insertions, deletions and replacements that turn a into b (Levenshtein distance).
size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace simclr
