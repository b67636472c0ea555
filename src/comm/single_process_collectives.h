// Collectives of a single rank: copies, or nothing at all.
#pragma once

#include "src/comm/collectives.h"

namespace simclr {

class SingleProcessCollectives : public Collectives {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_gather(ConstTypedSpan send, TypedSpan receive) override;
  void ordered_sum(TypedSpan data) override;
  void reduce_scatter(ConstTypedSpan send, TypedSpan receive) override;
  void broadcast(TypedSpan data, int root) override;
  void barrier() override {}
};

}  // namespace simclr
