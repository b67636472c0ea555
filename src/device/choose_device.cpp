#include "src/device/choose_device.h"

namespace simclr {

int choose_gpu(int visible, int local_rank, int local_size) {
  SIMCLR_CHECK(visible >= 1 && local_rank >= 0 && local_rank < local_size, "{} GPUs for rank {} of {} on its node",
               visible, local_rank, local_size);
  if (visible == 1) return 0;
  if (visible < local_size) {
    fail(ExitCode::kDevice,
         "{} ranks on this node and {} GPUs; start at most {} ranks here, one rank computes on one GPU", local_size,
         visible, visible);
  }
  return local_rank;
}

}  // namespace simclr
