// Ranks as threads of one process, for tests of code that takes Collectives: run_ranks(4, [](Collectives& c) { ... }).
// The same contract and the same order of sums as MpiCollectives, without MPI. Each mistake that would hang or corrupt
// a real run (a rank that leaves early, another operation, another count) throws an Error that names the rank.
#pragma once

#include <functional>

#include "src/comm/collectives.h"

namespace simclr {

// Runs body once per rank, each in its own thread with its own Collectives, and returns when all have returned.
// The exception of the lowest rank that failed on its own is rethrown; ranks that waited for it are released.
// A rank that waits in a collective, or works outside one, for longer than timeout_s: an Error, or the end of the
// process when its thread cannot be stopped.
void run_ranks(int size, const std::function<void(Collectives&)>& body, double timeout_s = 60);

// Forwards every call. A test derives from it and overrides the calls that it records, counts or falsifies.
class ForwardingCollectives : public Collectives {
 public:
  explicit ForwardingCollectives(Collectives& inner) : inner_(inner) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  void all_gather(ConstTypedSpan send, TypedSpan receive) override { inner_.all_gather(send, receive); }
  void ordered_sum(TypedSpan data) override { inner_.ordered_sum(data); }
  void start_ordered_sum(TypedSpan data) override { inner_.start_ordered_sum(data); }
  void finish_sums() override { inner_.finish_sums(); }
  void reduce_scatter(ConstTypedSpan send, TypedSpan receive) override { inner_.reduce_scatter(send, receive); }
  void broadcast(TypedSpan data, int root) override { inner_.broadcast(data, root); }
  void barrier() override { inner_.barrier(); }

 protected:
  Collectives& inner() { return inner_; }

 private:
  Collectives& inner_;
};

}  // namespace simclr
