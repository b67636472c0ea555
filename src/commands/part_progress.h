// Progress of a long part of a command: a line that rewrites itself on a terminal, elsewhere a line in the log every ten
// seconds. A part that ends earlier prints nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace simclr {

class PartProgress {
 public:
  // shown: true on rank 0. name: "features of train images"
  PartProgress(bool shown, std::string name);
  ~PartProgress();
  PartProgress(const PartProgress&) = delete;
  PartProgress& operator=(const PartProgress&) = delete;

  // "features of train images: 12800 of 50000, left 1:20"
  void at(int64_t done, int64_t total);
  // For work of unknown length: "linear probe, C = 1: iteration 120, gradient 3e-05".
  void say(std::string_view text);

 private:
  const bool shown_;
  const std::string name_;
  const double start_s_;
  double last_s_;
  bool rewritten_ = false;
};

}  // namespace simclr
