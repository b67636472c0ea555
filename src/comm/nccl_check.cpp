#include "src/comm/nccl_check.h"

#include <string_view>

#include "kernels/common/error.h"

namespace simclr {

void nccl_check(ncclResult_t status, const char* call, const char* file, int line) {
  if (status == ncclSuccess || status == ncclInProgress) return;
  const std::string_view path = file;
  const auto root = path.rfind("src/");
  const char* detail = ncclGetLastError(nullptr);
  fail(ExitCode::kDevice, "NCCL: {} ({}), in {} at {}:{}{}{}; NCCL_DEBUG=INFO shows more", ncclGetErrorString(status),
       static_cast<int>(status), call, root == std::string_view::npos ? path : path.substr(root), line,
       detail && *detail ? ": " : "", detail ? detail : "");
}

}  // namespace simclr
