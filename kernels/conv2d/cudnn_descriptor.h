// One object of cuDNN's backend API as a move-only value: create, set attributes, finalize, read attributes.
// Errors of the library become Error(kDevice) with the library's own words. Nothing here knows about convolutions.
#pragma once

#include <cudnn.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "kernels/common/error.h"
#include "kernels/common/numbers.h"

namespace simclr::cudnn {

// Throws Error(kDevice) "cuDNN: WHAT failed: ..." unless status is success.
void check(cudnnStatus_t status, const char* what);

class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) {
    check(cudnnBackendCreateDescriptor(type, &handle_), "creating a descriptor");
  }
  Descriptor(Descriptor&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (handle_) cudnnBackendDestroyDescriptor(handle_);
  }

  cudnnBackendDescriptor_t get() const { return handle_; }

  template <typename T>
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::span<const T> values) {
    check(cudnnBackendSetAttribute(handle_, name, type, std::ssize(values), values.data()), "setting an attribute");
    return *this;
  }
  template <typename T>
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    return set(name, type, std::span<const T>(&value, 1));
  }
  Descriptor& set(cudnnBackendAttributeName_t name, std::initializer_list<int64_t> values) {
    return set(name, CUDNN_TYPE_INT64, std::span<const int64_t>(values.begin(), values.size()));
  }
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value.handle_);
  }

  // what: "the graph"; says in the message which object the library refused.
  Descriptor& finalize(const char* what) {
    check(cudnnBackendFinalize(handle_), what);
    return *this;
  }
  bool try_finalize() { return cudnnBackendFinalize(handle_) == CUDNN_STATUS_SUCCESS; }

  // At most `room` values; fewer come back when the attribute has fewer.
  template <typename T>
  std::vector<T> read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t room) const {
    std::vector<T> values(room);
    int64_t count = 0;
    check(cudnnBackendGetAttribute(handle_, name, type, room, &count, values.data()), "reading an attribute");
    values.resize(std::min(room, count));
    return values;
  }
  template <typename T>
  T read_one(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const {
    const auto values = read<T>(name, type, 1);
    SIMCLR_CHECK(values.size() == 1, "cuDNN's attribute {} has no value", to_int(name));
    return values[0];
  }
  // Descriptors that the library fills in: it requires them to exist.
  std::vector<Descriptor> read_descriptors(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                           int64_t room) const;

 private:
  cudnnBackendDescriptor_t handle_ = nullptr;
};

}  // namespace simclr::cudnn
