// What the fake NCCL does when a stream gets to it: collectives through slots, sends and receives through pipes, sums
// in the order of the ranks.
#pragma once

#include <memory>
#include <vector>

#include "emulator/nccl_segment.h"

namespace simclr::emulator::nccl {

enum Kind { kAllReduce = 1, kBroadcast, kAllGather, kReduceScatter };
const char* name_of(int kind);

size_t size_of(ncclDataType_t type);  // 0: the fake does not have it
const char* name_of(ncclDataType_t type);

// acc[i] = acc[i] op in[i]; avg adds, and is divided by finish().
void reduce(std::byte* acc, const std::byte* in, size_t count, ncclDataType_t type, ncclRedOp_t op);
void finish(std::byte* acc, size_t count, ncclDataType_t type, ncclRedOp_t op, int ranks);
bool can_reduce(ncclDataType_t type, ncclRedOp_t op);

// count: of the call, as the documentation of each collective defines it. A failure is in segment.status().
void run_collective(Segment& segment, const Call& call, const std::byte* send, std::byte* receive);

struct Transfer {
  bool is_send = false;
  std::byte* data = nullptr;
  uint64_t count = 0;
  ncclDataType_t type{};
  int peer = 0;
  size_t done = 0;     // bytes
  bool begun = false;  // announced, or met its announcement
  bool ended = false;
};
// All transfers of a group make progress together; those of one pair and direction keep their order.
void run_transfers(Segment& segment, std::vector<Transfer> transfers);

}  // namespace simclr::emulator::nccl
