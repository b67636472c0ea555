// Stands in for nccl_collectives.cpp in a build without CUDA.
#include "src/comm/nccl_collectives.h"

namespace simclr {

std::unique_ptr<NcclCollectives> make_nccl_collectives(Collectives&, Context&, Reduction, CollectiveObserver*) {
  fail(ExitCode::kOther, "internal error: NCCL in a build without CUDA");
}

std::string nccl_version() {
  return "";
}

}  // namespace simclr
