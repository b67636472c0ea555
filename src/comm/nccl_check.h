// NCCL's return codes turned into Error(kDevice) that names call, file and line.
#pragma once

#include <nccl.h>

namespace simclr {

// Throws Error(kDevice) unless status is ncclSuccess, or ncclInProgress of a communicator that does not block.
void nccl_check(ncclResult_t status, const char* call, const char* file, int line);

}  // namespace simclr

#define SIMCLR_NCCL(call) ::simclr::nccl_check((call), #call, __FILE__, __LINE__)
