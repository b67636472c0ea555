// All parameters of a network in two contiguous buffers (values, gradients), so that one ordered sum and one update
// cover them; and the named buffers (running statistics), which are saved with the weights but have no gradient.
//
// Layers declare what they need in their constructors; allocate() then sets the pointers.
// Each parameter starts at a multiple of 256 bytes; the gaps hold zeros.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "src/device/context.h"

namespace simclr {

// Where a gradient becomes global: by the ordered sum over ranks after backward, or already inside the layer
// (batch norm, whose sums are global anyway).
enum class GradientScope { kPerRank, kGlobal };

struct Parameter {
  std::string name;            // torchvision's, e.g. layer1.0.conv1.weight
  std::vector<int64_t> shape;  // OIHW, [out, in] or [C]
  int64_t elements = 0;
  GradientScope scope = GradientScope::kPerRank;
  float* value = nullptr;
  float* grad = nullptr;

  bool one_dimensional() const { return shape.size() == 1; }
};

// Called in backward: the per-rank gradients of `first` and of all that follow it in the store are complete.
using GradientsReady = std::function<void(const Parameter& first)>;
inline void ignore_ready(const Parameter& /*first*/) {}

// Called in forward between two layers, at the same places on all ranks. What it throws ends the step.
using BetweenLayers = std::function<void()>;
inline void nothing_between() {}

struct NamedBuffer {
  std::string name;  // e.g. layer1.0.bn1.running_mean
  std::vector<int64_t> shape;
  int64_t elements = 0;
  float* value = nullptr;
};

class ParameterStore {
 public:
  // Only before allocate(). The reference is valid for the lifetime of the store.
  Parameter& add(std::string name, std::vector<int64_t> shape, GradientScope scope);
  NamedBuffer& add_buffer(std::string name, std::vector<int64_t> shape);
  void allocate(Context& context);

  std::deque<Parameter>& parameters() { return parameters_; }
  const std::deque<Parameter>& parameters() const { return parameters_; }
  const std::deque<NamedBuffer>& buffers() const { return buffers_; }
  int64_t element_count() const;  // without the gaps

  std::span<float> gradients() const { return gradients_.as<float>(); }  // all, gaps included
  // The gradients that have to be summed over ranks: a prefix of gradients().
  std::span<float> per_rank_gradients() const { return gradients().first(per_rank_elements_); }

 private:
  std::deque<Parameter> parameters_;
  std::deque<NamedBuffer> buffers_;
  Buffer values_, gradients_, buffer_memory_;
  int64_t per_rank_elements_ = 0;
};

}  // namespace simclr
