// What the program says: to the console on rank 0 (errors on every rank) and to RUN_FOLDER/train.log on rank 0.
// One message is one line. Thread-safe. Built on spdlog, which stays inside log.cpp.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace simclr {

enum class LogLevel {
  kProgress,  // a line of the running step: to a terminal it rewrites the last one
  kInfo,
  kWarning,
  kError,
};

struct LogOptions {
  int rank = 0;
  int ranks = 1;
  std::string host = {};  // named next to the rank in errors when there are several ranks
  int out_fd = 1;
  int error_fd = 2;
};

// Once, when the rank is known. Before it the log behaves as rank 0 of 1.
void start_log(const LogOptions& options);

// Every rank, when the run folder is known and exists: rank 0 appends to RUN_FOLDER/train.log from now on, the others
// note its place for log_last_words. Error(kOutput).
void open_log_file(const std::filesystem::path& run_folder);

void log_message(LogLevel level, std::string_view text);
template <typename... Args>
void log_info(fmt::format_string<Args...> text, Args&&... args) {
  log_message(LogLevel::kInfo, fmt::format(text, std::forward<Args>(args)...));
}
template <typename... Args>
void log_warning(fmt::format_string<Args...> text, Args&&... args) {
  log_message(LogLevel::kWarning, fmt::format(text, std::forward<Args>(args)...));
}
template <typename... Args>
void log_error(fmt::format_string<Args...> text, Args&&... args) {
  log_message(LogLevel::kError, fmt::format(text, std::forward<Args>(args)...));
}

// Printed also with --quiet: how the run ended, and what to do next.
void log_final(std::string_view text);
// From now on the console has warnings, errors and log_final alone; train.log has everything.
void make_console_quiet();

// Rewrites the last line of a terminal, without a trace in train.log; empty text removes it.
void rewrite_console_line(std::string_view text);
bool console_is_terminal();

// Makes train.log durable. Error(kOutput) when it, or any write to it or to the console since the start, failed.
void flush_log();

// A line (an error unless `level` says otherwise) from a thread that must not block: straight to stderr, then to
// train.log, on every rank, without locks. For the watchdog, right before _exit.
void log_last_words(std::string_view text, LogLevel level = LogLevel::kError) noexcept;

// Of several processes that find the same reason at once, one says it: `claim` is true there, and may not block.
// Without it everybody does.
void set_last_words_claim(bool (*claim)()) noexcept;
bool claim_last_words() noexcept;

}  // namespace simclr
