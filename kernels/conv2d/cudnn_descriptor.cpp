#include "kernels/conv2d/cudnn_descriptor.h"

#include <string>

namespace simclr::cudnn {

void check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char reason[512] = {};
  cudnnGetLastErrorString(reason, sizeof reason);
  std::string line = reason;
  std::replace(line.begin(), line.end(), '\n', ' ');
  fail(ExitCode::kDevice, "cuDNN {}: {} failed: {} {}", cudnnGetVersion(), what, cudnnGetErrorString(status), line);
}

std::vector<Descriptor> Descriptor::read_descriptors(cudnnBackendAttributeName_t name,
                                                     cudnnBackendDescriptorType_t type, int64_t room) const {
  std::vector<Descriptor> result;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (int64_t i = 0; i < room; ++i) handles.push_back(result.emplace_back(type).get());
  int64_t count = 0;
  if (room > 0)
    check(cudnnBackendGetAttribute(handle_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, room, &count, handles.data()),
          "reading an attribute");
  while (std::ssize(result) > count) result.pop_back();
  return result;
}

}  // namespace simclr::cudnn
