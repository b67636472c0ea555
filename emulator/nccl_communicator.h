// What the entry points of the fake NCCL share: communicators by handle, and refusals.
#pragma once

#include <memory>

#include "emulator/nccl_segment.h"

namespace simclr::emulator::nccl {

// One line on stderr, which is also ncclGetLastError(). Returns status.
[[gnu::format(printf, 2, 3)]] ncclResult_t misuse(ncclResult_t status, const char* format, ...);

// What a call needs of a communicator, taken while it is known to live; no segment when the handle is none.
struct Comm {
  std::shared_ptr<Segment> segment;
  int device = 0;
};
Comm find_comm(ncclComm_t comm);

}  // namespace simclr::emulator::nccl
