#include "src/base/log.h"

#include <fcntl.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <mutex>

#include "kernels/common/error.h"
#include "src/base/console.h"
#include "src/base/file.h"

namespace simclr {
namespace {

// spdlog's levels carry ours: debug is the running step's line.
spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::kProgress:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

// https://no-color.org: not where NO_COLOR is set to something; and only where a person looks.
bool takes_colors(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return ::isatty(fd) != 0 && (no_color == nullptr || *no_color == '\0') && terminal != nullptr &&
         std::string_view(terminal) != "dumb";
}

class ConsoleSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  ConsoleSink(const LogOptions& options, bool terminal)
      : console_(options.out_fd, options.error_fd, terminal),
        rank_(options.rank),
        colors_(takes_colors(options.error_fd)) {
    if (options.ranks > 1) speaker_ = fmt::format("rank {} ({}): ", options.rank, options.host);
  }
  Console& console() { return console_; }
  void make_quiet() { quiet_ = true; }
  bool is_quiet() const { return quiet_; }
  // Past the log's levels; rank 0 only.
  void print(std::string_view text) {
    if (rank_ == 0) console_.print(Stream::kOut, text);
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::string_view text(message.payload.data(), message.payload.size());
    if (message.level >= spdlog::level::err) {
      console_.keep();
      console_.print(Stream::kError, head("error:", "31") + (rank_ == 0 ? "" : speaker_) + std::string(text));
    } else if (rank_ != 0) {
      return;
    } else if (message.level == spdlog::level::warn) {
      console_.print(Stream::kError, head("warning:", "33") + std::string(text));
    } else if (quiet_) {
      return;
    } else if (message.level == spdlog::level::debug && console_.is_terminal()) {
      console_.rewrite(text);
    } else {
      console_.print(Stream::kOut, text);
    }
  }
  void flush_() override {}

 private:
  // "error: ", bold and in a color (ECMA-48, SGR) on a terminal.
  std::string head(std::string_view word, std::string_view color) const {
    return colors_ ? fmt::format("\x1b[1;{}m{}\x1b[0m ", color, word) : fmt::format("{} ", word);
  }

  Console console_;
  const int rank_;
  const bool colors_;
  std::atomic<bool> quiet_{false};
  std::string speaker_;
};

// Each line is one write(2): nothing is lost when the process ends without warning. Failures are kept for flush_log.
class FileSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FileSink(FileHandle file) : file_(std::move(file)) { set_pattern_("%Y-%m-%d %H:%M:%S.%e %l: %v"); }

  int sync() {
    if (first_error_ != 0) return first_error_;
    // EINVAL, EROFS: not a file that can be synced (a pipe, a device).
    return ::fsync(file_.get()) == 0 || errno == EINVAL || errno == EROFS ? 0 : errno;
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    const int error = write_all(file_.get(), line.data(), line.size());
    int none = 0;
    if (error != 0) first_error_.compare_exchange_strong(none, error);
  }
  void flush_() override {}

 private:
  const FileHandle file_;
  std::atomic<int> first_error_{0};
};

// What log_last_words needs without locks; written while only the main thread runs.
struct LastWords {
  int error_fd = 2;
  bool terminal = false;
  std::array<char, 4096> log_path{};
};

struct Log {
  std::shared_ptr<ConsoleSink> console_sink;
  std::shared_ptr<FileSink> file_sink;
  std::shared_ptr<spdlog::logger> logger;
  LogOptions options;
  std::string path;
  LastWords last_words;

  Log() { start({}); }

  void start(const LogOptions& new_options) {
    options = new_options;
    const bool terminal = options.out_fd == STDOUT_FILENO && options.rank == 0 && stdout_is_terminal();
    console_sink = std::make_shared<ConsoleSink>(options, terminal);
    file_sink = nullptr;
    path.clear();
    logger = std::make_shared<spdlog::logger>("simclr", console_sink);
    logger->set_level(spdlog::level::debug);
    last_words.error_fd = options.error_fd;
    last_words.terminal = terminal;
    last_words.log_path.fill('\0');
  }
};

Log& the_log() {
  static Log* instance = new Log;  // never destroyed: other threads may speak while the process ends
  return *instance;
}

// One message is one line, whatever a path or a library's text contains.
std::string one_line(std::string_view text) {
  std::string line(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\t'; }, ' ');
  return line;
}

}  // namespace

void start_log(const LogOptions& options) {
  the_log().start(options);
}

void open_log_file(const std::filesystem::path& run_folder) {
  const std::string path = (run_folder / "train.log").string();
  Log& state = the_log();
  if (path.size() < state.last_words.log_path.size())
    std::memcpy(state.last_words.log_path.data(), path.data(), path.size());
  state.path = path;
  if (state.options.rank != 0) return;
  state.file_sink = std::make_shared<FileSink>(open_in_place(path, O_WRONLY | O_APPEND | O_CREAT));
  state.logger->sinks().push_back(state.file_sink);
}

void log_message(LogLevel level, std::string_view text) {
  the_log().logger->log(level_of(level), "{}", one_line(text));
}

void log_final(std::string_view text) {
  ConsoleSink& sink = *the_log().console_sink;
  sink.console().keep();
  log_message(LogLevel::kInfo, text);
  if (sink.is_quiet()) sink.print(one_line(text));
}

void make_console_quiet() {
  the_log().console_sink->make_quiet();
}

void rewrite_console_line(std::string_view text) {
  if (the_log().console_sink->is_quiet()) return;
  Console& console = the_log().console_sink->console();
  text.empty() ? console.clear() : console.rewrite(one_line(text));
}

bool console_is_terminal() {
  return the_log().console_sink->console().is_terminal();
}

void flush_log() {
  Log& state = the_log();
  if (state.file_sink) {
    if (const int error = state.file_sink->sync())
      fail(ExitCode::kOutput, "cannot write {}: {}; free some space or choose another run.output_dir", state.path,
           errno_text(error));
  }
  if (const int error = state.console_sink->console().first_error())
    fail(ExitCode::kOutput, "cannot write to the standard output: {}; check where it goes", errno_text(error));
}

namespace {
std::atomic<bool (*)()> last_words_claim = nullptr;
}  // namespace

void set_last_words_claim(bool (*claim)()) noexcept {
  last_words_claim = claim;
}

bool claim_last_words() noexcept {
  const auto claim = last_words_claim.load();
  return claim == nullptr || claim();
}

void log_last_words(std::string_view text, LogLevel level) noexcept {
  const bool error = level == LogLevel::kError;
  const LastWords& words = the_log().last_words;
  std::array<char, 2048> line{};
  const int length = static_cast<int>(std::min<size_t>(text.size(), 1900));
  const int shown = std::snprintf(line.data(), line.size(), "%s%s%.*s\n", words.terminal ? "\n" : "",
                                  error ? "error: " : "", length, text.data());
  write_all(words.error_fd, line.data(), static_cast<size_t>(shown));
  if (words.log_path[0] == '\0') return;
  const FileHandle file(
      ::open(words.log_path.data(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
  if (!file.is_open()) return;
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  std::array<char, 32> time{};
  std::strftime(time.data(), time.size(), "%Y-%m-%d %H:%M:%S", &parts);
  const int written = std::snprintf(line.data(), line.size(), "%s.000 %s: %.*s\n", time.data(),
                                    error ? "error" : "info", length, text.data());
  write_all(file.get(), line.data(), static_cast<size_t>(written));
}

}  // namespace simclr
