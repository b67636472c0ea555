// From YAML and --set to Settings. The only place where the YAML library is used is loader.cpp.
// Refused, each with its place: unknown keys (with the nearest one), duplicate keys, wrong types, keys without a value,
// an empty file ({} means "all defaults"), several documents, merge keys, tags. Aliases (&a, *a) are YAML's own and
// work.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/config/faults.h"
#include "src/config/settings.h"

namespace simclr {

// Reads the file, then the overrides ("section.key=value", the value as YAML writes it), then checks ranges and
// contradictions (validator.h). Throws ONE Error(kUsage) with all faults, one a line. origins may be nullptr.
Settings load_settings(const std::string& path, const std::vector<std::string>& overrides = {},
                       KeyOrigins* origins = nullptr);

// The same for a text, e.g. the configuration inside a checkpoint; origin stands for the file name in messages.
Settings settings_from_string(std::string_view text, const std::string& origin,
                              const std::vector<std::string>& overrides = {}, KeyOrigins* origins = nullptr);

// `base` with what the file ("": none) and then the overrides change of it, checked as a whole; base_origin names where
// the other keys come from in messages. given: the keys that were changed, with their places; may be nullptr.
Settings change_settings(const Settings& base, const std::string& base_origin, const std::string& path,
                         const std::vector<std::string>& overrides, KeyOrigins* given = nullptr);

}  // namespace simclr
