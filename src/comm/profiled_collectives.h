// Collectives whose calls are spans of a profile.
#pragma once

#include "src/comm/collectives.h"
#include "src/device/profiler.h"

namespace simclr {

class ProfiledCollectives final : public Collectives {
 public:
  // Both outlive this.
  ProfiledCollectives(Collectives& inner, Profiler& profiler) : inner_(inner), profiler_(profiler) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  void all_gather(ConstTypedSpan send, TypedSpan receive) override;
  void ordered_sum(TypedSpan data) override;
  void start_ordered_sum(TypedSpan data) override;
  void finish_sums() override;
  void reduce_scatter(ConstTypedSpan send, TypedSpan receive) override;
  void broadcast(TypedSpan data, int root) override;
  void barrier() override;

 private:
  Collectives& inner_;
  Profiler& profiler_;
};

}  // namespace simclr
