// The name of a convolution plan, "engine 67 knobs 2=4,13=0": enough to make the same plan again with the same cuDNN,
// on another rank or after a resume. Text only; knows nothing of the library.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace simclr::cudnn {

struct PlanName {
  int64_t engine = 0;                              // CUDNN_ATTR_ENGINE_GLOBAL_INDEX
  std::vector<std::pair<int64_t, int64_t>> knobs;  // (cudnnBackendKnobType_t, value), in the library's order

  std::string text() const;
  static PlanName parse(const std::string& text);  // throws Error(kDevice) that quotes a text that does not name one
};

}  // namespace simclr::cudnn
