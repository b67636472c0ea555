#include "src/nn/parameter_store.h"

#include <algorithm>

#include "kernels/common/error.h"
#include "kernels/common/views.h"

namespace simclr {
namespace {

constexpr int64_t kAlignElements = kBufferAlignment / sizeof(float);

int64_t product(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  return n;
}

}  // namespace

Parameter& ParameterStore::add(std::string name, std::vector<int64_t> shape, GradientScope scope) {
  SIMCLR_CHECK(values_.bytes() == 0, "parameter {} is added after allocate()", name);
  for (const auto& p : parameters_) SIMCLR_CHECK(p.name != name, "two parameters are called {}", name);
  const int64_t elements = product(shape);
  return parameters_.emplace_back(Parameter{std::move(name), std::move(shape), elements, scope, nullptr, nullptr});
}

NamedBuffer& ParameterStore::add_buffer(std::string name, std::vector<int64_t> shape) {
  SIMCLR_CHECK(values_.bytes() == 0, "buffer {} is added after allocate()", name);
  const int64_t elements = product(shape);
  return buffers_.emplace_back(NamedBuffer{std::move(name), std::move(shape), elements, nullptr});
}

void ParameterStore::allocate(Context& context) {
  std::vector<int64_t> offsets(parameters_.size());
  int64_t total = 0;
  for (const auto scope : {GradientScope::kPerRank, GradientScope::kGlobal}) {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (parameters_[i].scope != scope) continue;
      offsets[i] = total;
      total += round_up(parameters_[i].elements, kAlignElements);
    }
    if (scope == GradientScope::kPerRank) per_rank_elements_ = total;
  }
  values_ = context.allocate_elements<float>(total);
  gradients_ = context.allocate_elements<float>(total);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].value = values_.as<float>().data() + offsets[i];
    parameters_[i].grad = gradients_.as<float>().data() + offsets[i];
  }

  int64_t buffer_total = 0;
  for (const auto& b : buffers_) buffer_total += round_up(b.elements, kAlignElements);
  buffer_memory_ = context.allocate_elements<float>(buffer_total);
  float* next = buffer_memory_.as<float>().data();
  for (auto& b : buffers_) {
    b.value = next;
    next += round_up(b.elements, kAlignElements);
  }
}

int64_t ParameterStore::element_count() const {
  int64_t total = 0;
  for (const auto& p : parameters_) total += p.elements;
  return total;
}

}  // namespace simclr
