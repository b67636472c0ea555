// The fake of cuDNN's backend API: its objects as bags of attributes. One convolution per graph is what it computes
// (cudnn_convolution.h); anything else of cuDNN is an unresolved symbol or a loud refusal.
// It answers with the status codes of the real library (cudnn_backend_test.cpp runs against both). It is stricter where
// the real one fills in a default or crashes: every attribute that the program leaves out is a refusal.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace simclr::emulator::cudnn {

struct Object;
using ObjectPtr = std::shared_ptr<const Object>;

// One attribute: plain values, or the objects as they were when they were set (the library copies as well).
struct Attribute {
  cudnnBackendAttributeType_t type{};
  int64_t count = 0;
  std::vector<std::byte> bytes;
  std::vector<ObjectPtr> objects;
};

struct Object {
  cudnnBackendDescriptorType_t type{};
  bool finalized = false;
  std::map<int, Attribute> attributes;

  bool has(int name) const { return attributes.count(name) != 0; }
  template <typename T>
  std::vector<T> values(int name) const {
    const auto at = attributes.find(name);
    if (at == attributes.end()) return {};
    std::vector<T> result(at->second.count);
    std::memcpy(result.data(), at->second.bytes.data(), at->second.bytes.size());
    return result;
  }
  template <typename T>
  T value(int name) const {
    return values<T>(name).at(0);
  }
  ObjectPtr object(int name) const {
    const auto at = attributes.find(name);
    return at == attributes.end() || at->second.objects.empty() ? nullptr : at->second.objects[0];
  }
  // As the library fills in objects of its own.
  template <typename T>
  void put(int name, cudnnBackendAttributeType_t value_type, const std::vector<T>& v) {
    Attribute attribute{value_type, static_cast<int64_t>(v.size()), std::vector<std::byte>(v.size() * sizeof(T)), {}};
    if (!v.empty()) std::memcpy(attribute.bytes.data(), v.data(), attribute.bytes.size());
    attributes[name] = std::move(attribute);
  }
  void put(int name, const std::vector<ObjectPtr>& v) {
    attributes[name] = {CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(v.size()), {}, v};
  }
};

// What an attribute of a type of object may be.
struct AttributeRule {
  cudnnBackendDescriptorType_t object;
  int name;
  cudnnBackendAttributeType_t type;
  int64_t least = 1, most = 1;  // values; 0 least: may be left out
};
bool is_known(cudnnBackendDescriptorType_t object);
const AttributeRule* find_rule(cudnnBackendDescriptorType_t object, int name);
// The rule of an attribute that the object lacks, or null.
const AttributeRule* find_missing(const Object& object);
size_t size_of_value(cudnnBackendAttributeType_t type);

// The object behind a handle, or null when it is none or was destroyed.
std::shared_ptr<Object> find_object(cudnnBackendDescriptor_t handle);

// Checks that need more than one attribute; called by cudnnBackendFinalize when all attributes are there.
cudnnStatus_t finalize_tensor(const Object& tensor);
cudnnStatus_t finalize_convolution(const Object& convolution);
cudnnStatus_t finalize_operation(const Object& operation);
cudnnStatus_t finalize_graph(const Object& graph);
cudnnStatus_t finalize_engine(Object& engine);
cudnnStatus_t finalize_config(const Object& config);
cudnnStatus_t finalize_heuristics(Object& heuristics);  // makes the results
cudnnStatus_t finalize_plan(Object& plan);
cudnnStatus_t finalize_pack(const Object& pack);

// A misuse: one line on stderr, which is also the thread's last error string. Returns status.
[[gnu::format(printf, 2, 3)]] cudnnStatus_t misuse(cudnnStatus_t status, const char* format, ...);
// What a correct program may run into: the last error string only.
[[gnu::format(printf, 2, 3)]] cudnnStatus_t decline(cudnnStatus_t status, const char* format, ...);

}  // namespace simclr::emulator::cudnn
