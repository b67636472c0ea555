// Collectives that count what a step exchanges and how long it takes. Ranks come to an operation at different times:
// with a barrier before it, waiting for each other and moving bytes are timed apart.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "src/base/progress_line.h"
#include "src/comm/collectives.h"
#include "src/comm/element.h"

namespace simclr {

class TimedCollectives final : public Collectives {
 public:
  struct Kind {
    int64_t calls = 0;
    double seconds = 0, waited_seconds = 0;  // in the operation; at the barrier before it
  };
  // By operation, and bytes of the whole that is summed or gathered.
  using Kinds = std::map<std::pair<std::string, int64_t>, Kind>;

  // inner outlives this.
  explicit TimedCollectives(Collectives& inner) : inner_(inner) {}

  // Off: operations pass through untouched.
  void count(bool on) { counts_ = on; }
  const Kinds& kinds() const { return kinds_; }

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  void all_gather(ConstTypedSpan send, TypedSpan receive) override {
    timed("all_gather", bytes_of(receive), [&] { inner_.all_gather(send, receive); });
  }
  void ordered_sum(TypedSpan data) override {
    timed("ordered_sum", bytes_of(data), [&] { inner_.ordered_sum(data); });
  }
  void start_ordered_sum(TypedSpan data) override {
    timed("gradient_sum", bytes_of(data), [&] { inner_.start_ordered_sum(data); });
  }
  void finish_sums() override { inner_.finish_sums(); }
  void reduce_scatter(ConstTypedSpan send, TypedSpan receive) override {
    timed("reduce_scatter", bytes_of(send), [&] { inner_.reduce_scatter(send, receive); });
  }
  void broadcast(TypedSpan data, int root) override {
    timed("broadcast", bytes_of(data), [&] { inner_.broadcast(data, root); });
  }
  void barrier() override { inner_.barrier(); }

 private:
  template <typename F>
  void timed(const char* name, int64_t bytes, F&& operation) {
    if (!counts_) return operation();
    Kind& kind = kinds_[{name, bytes}];
    const double came_s = monotonic_seconds();
    inner_.barrier();
    const double start_s = monotonic_seconds();
    operation();
    kind.seconds += monotonic_seconds() - start_s;
    kind.waited_seconds += start_s - came_s;
    ++kind.calls;
  }

  Collectives& inner_;
  bool counts_ = false;
  Kinds kinds_;
};

}  // namespace simclr
