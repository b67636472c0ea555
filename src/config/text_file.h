// Reads a configuration file and normalizes its text, before any YAML is parsed.
#pragma once

#include <string>
#include <string_view>

#include "src/config/config_errors.h"

namespace simclr {

inline constexpr size_t kMaxConfigBytes = 1 << 20;  // 1 MiB: far above any real configuration

// The bytes of a regular file of at most 1 MiB; Error(kUsage) with the reason for anything else (missing, a folder,
// a pipe, unreadable, too large).
std::string read_text_file(const std::string& path);

// Removes a UTF-8 byte-order mark and turns CRLF into LF. Invalid text is added to errors as "where:line: ...":
// bytes that are not UTF-8, control characters, a lone CR, tabs in the indentation.
std::string clean_text(std::string_view text, std::string_view where, ConfigErrors& errors);

}  // namespace simclr
