// A table of the arrays that an op works on, once on the host and once in device memory: ops take both.
#pragma once

#include <utility>
#include <vector>

#include "src/device/context.h"

namespace simclr {

template <typename Run>
class DeviceTable {
 public:
  DeviceTable(Context& context, std::vector<Run> runs)
      : runs_(std::move(runs)), memory_(context.allocate_elements<Run>(runs_.size())) {
    context.device().upload(memory_.data(), runs_.data(), memory_.bytes());
  }
  const std::vector<Run>& host() const { return runs_; }
  const Run* device() const { return memory_.template as<Run>().data(); }

 private:
  std::vector<Run> runs_;
  Buffer memory_;
};

}  // namespace simclr
