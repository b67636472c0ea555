#include "kernels/common/bfloat16.h"

#include "kernels/common/parallel.h"

namespace simclr {

SIMCLR_MULTIVERSION void to_bfloat16(const float* from, int64_t count, Bfloat16* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = to_bfloat16(from[i]);
}

}  // namespace simclr
