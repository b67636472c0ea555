#include "src/comm/staged_collectives.h"

#include <algorithm>

#include "src/comm/element.h"

namespace simclr {

TypedSpan StagedCollectives::stage(Buffer& buffer, ConstTypedSpan host, bool copy) {
  const auto bytes = static_cast<size_t>(bytes_of(host));
  if (buffer.bytes() < bytes || buffer.bytes() == 0) buffer = Buffer(device_, std::max<size_t>(bytes, 4096));
  if (copy) device_->upload(buffer.data(), host.data, bytes);
  return {buffer.data(), host.count, host.type};
}

void StagedCollectives::fetch(const TypedSpan& staged, TypedSpan host) {
  device_->download(host.data, staged.data, static_cast<size_t>(bytes_of(host)));
}

void StagedCollectives::all_gather(ConstTypedSpan send, TypedSpan receive) {
  const InsideCollective waiting(observer_);
  const TypedSpan all = stage(second_, receive, false);
  inner_.all_gather(stage(first_, send, true), all);
  fetch(all, receive);
}

void StagedCollectives::ordered_sum(TypedSpan data) {
  const InsideCollective waiting(observer_);
  const TypedSpan staged = stage(first_, data, true);
  inner_.ordered_sum(staged);
  fetch(staged, data);
}

void StagedCollectives::reduce_scatter(ConstTypedSpan send, TypedSpan receive) {
  const InsideCollective waiting(observer_);
  const TypedSpan mine = stage(second_, receive, false);
  inner_.reduce_scatter(stage(first_, send, true), mine);
  fetch(mine, receive);
}

void StagedCollectives::broadcast(TypedSpan data, int root) {
  const InsideCollective waiting(observer_);
  const TypedSpan staged = stage(first_, data, rank() == root);
  inner_.broadcast(staged, root);
  fetch(staged, data);
}

void StagedCollectives::barrier() {
  const InsideCollective waiting(observer_);
  inner_.barrier();
}

}  // namespace simclr
