// The first error of this rank alone in work outside the computation: a line of metrics.jsonl, a checkpoint. Training
// continues until the control word has announced the error, and all ranks throw it together.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "src/comm/agreement.h"

namespace simclr {

class RankError {
 public:
  // For the message, "after step 12: ..."; steps done.
  void set_step(int64_t step) { step_ = step; }

  // Runs work and keeps the error that it throws, if that is the first.
  template <typename Work>
  void record(Work&& work) {
    try {
      std::forward<Work>(work)();
    } catch (...) {
      if (error_) return;
      const Error error = as_error(std::current_exception());
      error_.emplace(error.code(), fmt::format("after step {}: {}", step_, error.what()));
    }
  }

  bool exists() const { return error_.has_value(); }
  const std::optional<Error>& get() const { return error_; }

 private:
  int64_t step_ = 0;
  std::optional<Error> error_;
};

}  // namespace simclr
