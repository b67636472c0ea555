#include "kernels/common/exec.h"

#include <algorithm>

namespace simclr {

void ScratchNeed::widen(const ScratchNeed& other) {
  workspace_bytes = std::max(workspace_bytes, other.workspace_bytes);
  thread_bytes = std::max(thread_bytes, other.thread_bytes);
}

}  // namespace simclr
