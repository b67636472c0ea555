#include "src/comm/single_process_collectives.h"

#include <cstring>

#include "src/comm/element.h"

namespace simclr {
namespace {

void copy(ConstTypedSpan from, TypedSpan to) {
  if (from.count > 0) std::memcpy(to.data, from.data, bytes_of(from));
}

}  // namespace

void SingleProcessCollectives::all_gather(ConstTypedSpan send, TypedSpan receive) {
  check_all_gather(send, receive, 1);
  copy(send, receive);
}

void SingleProcessCollectives::ordered_sum(TypedSpan data) {
  check_sum(data, 1);
}

void SingleProcessCollectives::reduce_scatter(ConstTypedSpan send, TypedSpan receive) {
  check_reduce_scatter(send, receive, 1);
  copy(send, receive);
}

void SingleProcessCollectives::broadcast(TypedSpan, int root) {
  check_root(root, 1);
}

}  // namespace simclr
