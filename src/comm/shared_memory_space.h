// Whether /dev/shm has room for what the ranks of one host put there. Containers have 64 MiB of it by
// default, and a library that finds it full reports an error that does not name the cause.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/comm/mpi_session.h"

namespace simclr {

struct SharedMemoryFacts {
  int local_ranks = 0;  // of this host; 0: the launcher does not say
  uint64_t free_bytes = 0;
  bool has_gpus = false;
};

// One line when there is too little; nothing for a rank alone on its host. Per rank of the host:
//   4 MiB  the segment of Open MPI's shared memory transport (btl_vader_segment_size); without it MPI_Init may fail
//   64 MiB on GPUs: NCCL takes segments of 6 to 33 MB, several of them where GPUs cannot reach each other directly
std::optional<std::string> describe_shared_memory_shortage(const SharedMemoryFacts& facts);

// Checks this host; its first rank warns. Before MPI_Init, which is what fails first.
void check_shared_memory(const Launcher& launcher);

}  // namespace simclr
