// What the rules of validator.cpp share: whether a key's value can be used, and how an error names other keys.
// Holds no rule.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/common/error.h"
#include "src/config/config_errors.h"
#include "src/config/key_table.h"
#include "src/config/validator.h"

namespace simclr {

// One pass over the rules: which keys have valid values so far, where each was given, and the errors found.
class Rules {
 public:
  Rules(const KeyOrigins& origins, std::set<std::string, std::less<>> invalid, ConfigErrors& errors)
      : origins_(origins), invalid_(std::move(invalid)), errors_(errors) {}

  // False if one of the keys already has an error: no conclusions are drawn from its value.
  bool all_valid(std::initializer_list<std::string_view> keys) const {
    return std::none_of(keys.begin(), keys.end(), [&](std::string_view key) {
      SIMCLR_CHECK(find_key(key) != nullptr, "a rule names {}, which is not a key", key);
      return invalid_.contains(key);
    });
  }

  void refuse(std::string_view key, std::string_view text) {
    SIMCLR_CHECK(find_key(key) != nullptr, "a rule names {}, which is not a key", key);
    const auto origin = origins_.find(key);
    errors_.add(origin == origins_.end() ? "" : origin->second, key, text);
    invalid_.insert(std::string(key));
  }

  // The other key of a contradiction, with its value and place: "train.shards (8, run.yaml:3)".
  std::string describe(std::string_view key, const Settings& settings) const {
    return fmt::format("{} ({}, {})", key, find_key(key)->print(settings), place_of(key));
  }
  // The same as a clause: "train.shards is 8 (run.yaml:3)".
  std::string state(std::string_view key, const Settings& settings) const {
    return fmt::format("{} is {} ({})", key, find_key(key)->print(settings), place_of(key));
  }

 private:
  std::string_view place_of(std::string_view key) const {
    const auto origin = origins_.find(key);
    return origin == origins_.end() ? "the default" : std::string_view(origin->second);
  }

  const KeyOrigins& origins_;
  std::set<std::string, std::less<>> invalid_;
  ConfigErrors& errors_;
};

}  // namespace simclr
