#include "src/comm/gradient_reducer.h"

#include <algorithm>

#include "kernels/common/error.h"

namespace simclr {

GradientReducer::GradientReducer(Collectives& collectives, int64_t bucket_elements)
    : collectives_(collectives), bucket_elements_(bucket_elements) {
  SIMCLR_CHECK(bucket_elements > 0, "a bucket of {} elements", bucket_elements);
}

void GradientReducer::reduce(std::span<float> grad_parameters) {
  const int64_t count = static_cast<int64_t>(grad_parameters.size());
  for (int64_t begin = 0; begin < count; begin += bucket_elements_) {
    const int64_t length = std::min(bucket_elements_, count - begin);
    collectives_.ordered_sum(grad_parameters.subspan(static_cast<size_t>(begin), static_cast<size_t>(length)));
  }
}

}  // namespace simclr
