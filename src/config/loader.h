// From YAML and --set to Settings. loader.cpp is the only file that uses the YAML library.
// Refused, each with its place: unknown keys (with the nearest one), duplicate keys, wrong types, keys without a value,
// an empty file ({} means "all defaults"), several documents, merge keys, tags. Aliases (&a, *a) work as in YAML.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/config/config_errors.h"
#include "src/config/settings.h"

namespace simclr {

// Reads the file, then the overrides ("section.key=value", the value in YAML; of several for one key the last counts), then
// checks ranges and contradictions
// (validator.h). Throws ONE Error(kUsage) with all errors, one per line. origins may be nullptr.
Settings load_settings(const std::string& path, const std::vector<std::string>& overrides = {},
                       KeyOrigins* origins = nullptr);

// The same for a text, e.g. the configuration inside a checkpoint. Messages show origin in place of a file name.
Settings settings_from_string(std::string_view text, const std::string& origin,
                              const std::vector<std::string>& overrides = {}, KeyOrigins* origins = nullptr);

// `base` with the changes of the file ("": none) and then of the overrides, checked as a whole. Messages name
// base_origin as the place of keys that were not changed. given: the changed keys with their places; may be nullptr.
Settings change_settings(const Settings& base, const std::string& base_origin, const std::string& path,
                         const std::vector<std::string>& overrides, KeyOrigins* given = nullptr);

// For the log, one line for each override that has no effect, since a later one sets the same key.
std::vector<std::string> ignored_overrides(const std::vector<std::string>& overrides);

}  // namespace simclr
