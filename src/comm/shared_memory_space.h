// Whether /dev/shm has room for what the ranks of one host put there. Containers have 64 MiB of it unless told
// otherwise, and a library that finds it full says so in words that lead nobody to it.
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

// Looks at this host, and warns from its first rank. Before MPI_Init, which is what fails first.
void check_shared_memory(const Launcher& launcher);

}  // namespace simclr
