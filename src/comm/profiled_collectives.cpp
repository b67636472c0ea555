#include "src/comm/profiled_collectives.h"

#include "kernels/common/numbers.h"
#include "src/comm/element.h"

namespace simclr {
namespace {

OpName named(std::string_view op) {
  return {.kind = OpKind::kCollective, .layer = "collectives", .op = op};
}

// Batch-norm sums and losses are float64, gradients float32.
OpName sum_of(ElementType type) {
  return named(type == ElementType::kFloat64 ? "ordered_sum fp64" : "ordered_sum fp32");
}

}  // namespace

// Bytes are those that this rank sends.

void ProfiledCollectives::all_gather(ConstTypedSpan send, TypedSpan receive) {
  const ProfileSpan span(&profiler_, named("all_gather"),
                         [&] { return Work{.bytes = as_double(bytes_of(send)) * (size() - 1)}; });
  inner_.all_gather(send, receive);
}

void ProfiledCollectives::ordered_sum(TypedSpan data) {
  const ProfileSpan span(&profiler_, sum_of(data.type),
                         [&] { return Work{.bytes = 2 * as_double(bytes_of(data)) * (size() - 1) / size()}; });
  inner_.ordered_sum(data);
}

void ProfiledCollectives::start_ordered_sum(TypedSpan data) {
  const ProfileSpan span(&profiler_, sum_of(data.type),
                         [&] { return Work{.bytes = 2 * as_double(bytes_of(data)) * (size() - 1) / size()}; });
  inner_.start_ordered_sum(data);
}

void ProfiledCollectives::finish_sums() {
  inner_.finish_sums();
}

void ProfiledCollectives::reduce_scatter(ConstTypedSpan send, TypedSpan receive) {
  const ProfileSpan span(&profiler_, named("reduce_scatter"),
                         [&] { return Work{.bytes = as_double(bytes_of(send)) * (size() - 1) / size()}; });
  inner_.reduce_scatter(send, receive);
}

void ProfiledCollectives::broadcast(TypedSpan data, int root) {
  const ProfileSpan span(&profiler_, named("broadcast"));
  inner_.broadcast(data, root);
}

void ProfiledCollectives::barrier() {
  const ProfileSpan span(&profiler_, named("barrier"));
  inner_.barrier();
}

}  // namespace simclr
