// The two output streams of this process, shared by log lines and the one line that is rewritten in place on a
// terminal. Thread-safe. What to print on which rank is the log's decision.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>

namespace simclr {

enum class Stream { kOut, kError };

class Console {
 public:
  Console(int out_fd, int error_fd, bool out_is_terminal);

  // One line; a rewriting line below it is moved down.
  void print(Stream stream, std::string_view line);
  // Replaces the rewriting line, cut to the width of the terminal; nothing where there is no terminal.
  void rewrite(std::string_view text);
  // Removes the rewriting line.
  void clear();
  // Leaves it where it stands: what comes next begins below it.
  void keep();

  bool is_terminal() const { return terminal_; }
  // errno of the first failed write. A reader that closed its end (EPIPE, EIO) is not an error: its stream ends.
  int first_error() const { return first_error_.load(); }

 private:
  void put(Stream stream, std::string_view bytes);

  const int fds_[2];
  const bool terminal_;
  std::mutex mutex_;
  std::string rewriting_;
  bool silent_[2] = {false, false};
  std::atomic<int> first_error_{0};
};

// Whether a person sees stdout rewrite its line. Open MPI gives every rank a pseudo terminal, so under mpirun
// the answer is whether mpirun's own stdout is a terminal.
bool stdout_is_terminal();

}  // namespace simclr
