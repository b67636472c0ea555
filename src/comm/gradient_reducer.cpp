#include "src/comm/gradient_reducer.h"

#include <algorithm>

#include "kernels/common/error.h"

namespace simclr {

GradientReducer::GradientReducer(Collectives& collectives, int64_t bucket_elements)
    : collectives_(collectives), bucket_elements_(bucket_elements) {
  SIMCLR_CHECK(bucket_elements > 0, "a bucket of {} elements", bucket_elements);
}

void GradientReducer::begin(std::span<float> grad_parameters) {
  SIMCLR_CHECK(waiting_ == 0, "{} gradients of the step before were never summed", waiting_);
  gradients_ = grad_parameters;
  waiting_ = std::ssize(grad_parameters);
}

void GradientReducer::ready_from(int64_t first) {
  SIMCLR_CHECK(first >= 0, "gradients are ready from {} on", first);
  while (waiting_ - bucket_elements_ >= first && waiting_ > 0) start_bucket(waiting_ - bucket_elements_);
}

void GradientReducer::finish() {
  while (waiting_ > 0) start_bucket(std::max<int64_t>(waiting_ - bucket_elements_, 0));
  collectives_.finish_sums();
}

void GradientReducer::reduce(std::span<float> grad_parameters) {
  begin(grad_parameters);
  finish();
}

void GradientReducer::start_bucket(int64_t begin) {
  collectives_.start_ordered_sum(gradients_.subspan(begin, waiting_ - begin));
  waiting_ = begin;
}

}  // namespace simclr
