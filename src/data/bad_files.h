// The files that a data set has skipped so far (data.on_error: skip). It only collects them: the trainer reports them.
#pragma once

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace simclr {

// Thread-safe.
class BadFiles {
 public:
  void add(std::string sentence) {  // "PATH: reason"
    const std::scoped_lock lock(mutex_);
    new_.push_back(std::move(sentence));
  }

  // The files added since the last call, sorted.
  std::vector<std::string> take_new() {
    std::vector<std::string> taken;
    {
      const std::scoped_lock lock(mutex_);
      taken.swap(new_);
    }
    std::sort(taken.begin(), taken.end());
    return taken;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> new_;
};

}  // namespace simclr
