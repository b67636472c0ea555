// Collectives on host memory over those of a GPU: what ranks agree on outside the step, once tensors travel by NCCL.
// Each operation copies to the device, runs there, copies back and waits. Not for the step.
#pragma once

#include "src/comm/collective_observer.h"
#include "src/comm/collectives.h"
#include "src/device/buffer.h"

namespace simclr {

class StagedCollectives final : public Collectives {
 public:
  // The collectives work on memory of the device; they and the observer, which may be null, outlive this.
  StagedCollectives(Collectives& on_device, std::shared_ptr<Device> device, CollectiveObserver* observer)
      : inner_(on_device), device_(std::move(device)), observer_(observer) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  void all_gather(ConstTypedSpan send, TypedSpan receive) override;
  void ordered_sum(TypedSpan data) override;
  void reduce_scatter(ConstTypedSpan send, TypedSpan receive) override;
  void broadcast(TypedSpan data, int root) override;
  void barrier() override;

 private:
  TypedSpan stage(Buffer& buffer, ConstTypedSpan host, bool copy);  // device memory for it, grown when needed
  void fetch(const TypedSpan& staged, TypedSpan host);

  Collectives& inner_;
  std::shared_ptr<Device> device_;
  CollectiveObserver* observer_;
  Buffer first_, second_;
};

}  // namespace simclr
