// The C entry points of the fake cuDNN that make, fill, finalize and read objects.
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <set>

#include "emulator/cudnn_objects.h"
#include "emulator/runtime.h"

namespace simclr::emulator::cudnn {
namespace {

struct Slot {
  std::shared_ptr<Object> object;
};

std::mutex& table_lock() {
  static auto* lock = new std::mutex;
  return *lock;
}
std::set<Slot*>& live_slots() {
  static auto* slots = new std::set<Slot*>;
  return *slots;
}

thread_local std::string last_error;

std::string format_text(const char* format, std::va_list arguments) {
  char text[512];
  std::vsnprintf(text, sizeof text, format, arguments);
  return text;
}

bool is_read_only(const AttributeRule& rule) {
  return rule.most == 0;  // the library makes it
}

}  // namespace

cudnnStatus_t misuse(cudnnStatus_t status, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  last_error = format_text(format, arguments);
  va_end(arguments);
  complain("cuDNN: %s", last_error.c_str());
  return status;
}

cudnnStatus_t decline(cudnnStatus_t status, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  last_error = format_text(format, arguments);
  va_end(arguments);
  return status;
}

std::shared_ptr<Object> find_object(cudnnBackendDescriptor_t handle) {
  const std::lock_guard guard(table_lock());
  auto* slot = static_cast<Slot*>(handle);
  return live_slots().count(slot) ? slot->object : nullptr;
}

namespace {

cudnnStatus_t finalize(Object& object) {
  switch (object.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return finalize_tensor(object);
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      return finalize_convolution(object);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return finalize_operation(object);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return finalize_graph(object);
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
      return finalize_engine(object);
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
      return finalize_config(object);
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      return finalize_heuristics(object);
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return finalize_plan(object);
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      return finalize_pack(object);
    default:
      return CUDNN_STATUS_SUCCESS;
  }
}

// Copies plain values out, or objects into the handles that the caller has made for them.
cudnnStatus_t copy_out(const Attribute& attribute, int64_t room, void* out) {
  const auto wanted = static_cast<size_t>(std::min(room, attribute.count));
  if (attribute.type != CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    std::memcpy(out, attribute.bytes.data(), wanted * size_of_value(attribute.type));
    return CUDNN_STATUS_SUCCESS;
  }
  const auto* handles = static_cast<const cudnnBackendDescriptor_t*>(out);
  for (size_t i = 0; i < wanted; ++i) {
    const std::lock_guard guard(table_lock());
    auto* slot = static_cast<Slot*>(handles[i]);
    if (!live_slots().count(slot) || slot->object->type != attribute.objects[i]->type || slot->object->finalized)
      return misuse(
          CUDNN_STATUS_BAD_PARAM,
          "cudnnBackendGetAttribute: element %zu must be a fresh descriptor of type %d for the library to fill", i,
          attribute.objects[i]->type);
    slot->object = std::make_shared<Object>(*attribute.objects[i]);
  }
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace
}  // namespace simclr::emulator::cudnn

using namespace simclr::emulator::cudnn;  // NOLINT: the entry points below stand outside of every namespace

extern "C" {

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor) {
  if (!descriptor) return misuse(CUDNN_STATUS_BAD_PARAM, "cudnnBackendCreateDescriptor: no place for the result");
  if (!is_known(type))
    return misuse(CUDNN_STATUS_NOT_SUPPORTED, "cudnnBackendCreateDescriptor: the fake has no objects of type %d", type);
  auto* slot = new Slot{std::make_shared<Object>()};
  slot->object->type = type;
  const std::lock_guard guard(table_lock());
  live_slots().insert(slot);
  *descriptor = slot;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  const std::lock_guard guard(table_lock());
  auto* slot = static_cast<Slot*>(descriptor);
  if (live_slots().erase(slot) == 0)
    return misuse(slot ? CUDNN_STATUS_BAD_PARAM : CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
                  "cudnnBackendDestroyDescriptor: %p is not a descriptor, or was destroyed before", descriptor);
  delete slot;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  if (!descriptor) return misuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "cudnnBackendSetAttribute: no descriptor");
  const auto object = find_object(descriptor);
  if (!object) return misuse(CUDNN_STATUS_BAD_PARAM, "cudnnBackendSetAttribute: a destroyed descriptor");
  if (object->finalized)
    return misuse(CUDNN_STATUS_BAD_PARAM, "cudnnBackendSetAttribute: attribute %d of a finalized descriptor", name);
  const AttributeRule* rule = find_rule(object->type, name);
  if (!rule || is_read_only(*rule))
    return misuse(CUDNN_STATUS_BAD_PARAM, "cudnnBackendSetAttribute: objects of type %d have no attribute %d to set",
                  object->type, name);
  if (rule->type != type)
    return misuse(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "cudnnBackendSetAttribute: attribute %d has type %d, not %d",
                  name, rule->type, type);
  if (!values || count < std::max<int64_t>(rule->least, 1) || count > rule->most)
    return misuse(
        CUDNN_STATUS_BAD_PARAM, "cudnnBackendSetAttribute: %lld values for attribute %d, which takes %lld to %lld",
        static_cast<long long>(count), name, static_cast<long long>(rule->least), static_cast<long long>(rule->most));
  if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    const auto* bytes = static_cast<const std::byte*>(values);
    object->attributes[name] = {type, count, {bytes, bytes + static_cast<size_t>(count) * size_of_value(type)}, {}};
    return CUDNN_STATUS_SUCCESS;
  }
  std::vector<ObjectPtr> objects;
  for (int64_t i = 0; i < count; ++i) {
    const auto part = find_object(static_cast<const cudnnBackendDescriptor_t*>(values)[i]);
    if (!part || !part->finalized)
      return misuse(part ? CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED : CUDNN_STATUS_BAD_PARAM,
                    "cudnnBackendSetAttribute: attribute %d is given a descriptor that is not finalized, or destroyed",
                    name);
    objects.push_back(part);
  }
  object->put(name, objects);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  if (!descriptor) return misuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "cudnnBackendFinalize: no descriptor");
  const auto object = find_object(descriptor);
  if (!object) return misuse(CUDNN_STATUS_BAD_PARAM, "cudnnBackendFinalize: a destroyed descriptor");
  if (object->finalized) return misuse(CUDNN_STATUS_BAD_PARAM, "cudnnBackendFinalize: finalized already");
  if (const AttributeRule* rule = find_missing(*object))
    return misuse(CUDNN_STATUS_BAD_PARAM, "cudnnBackendFinalize: attribute %d of an object of type %d is not set",
                  rule->name, object->type);
  if (const cudnnStatus_t status = finalize(*object); status != CUDNN_STATUS_SUCCESS) return status;
  object->finalized = true;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t room, int64_t* count, void* values) {
  const auto object = find_object(descriptor);
  if (!object) return misuse(CUDNN_STATUS_BAD_PARAM, "cudnnBackendGetAttribute: no descriptor, or a destroyed one");
  if (!object->finalized)
    return misuse(CUDNN_STATUS_NOT_INITIALIZED,
                  "cudnnBackendGetAttribute: attribute %d of a descriptor that is not finalized", name);
  const AttributeRule* rule = find_rule(object->type, name);
  if (!rule)
    return misuse(CUDNN_STATUS_BAD_PARAM, "cudnnBackendGetAttribute: objects of type %d have no attribute %d",
                  object->type, name);
  if (rule->type != type)
    return misuse(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "cudnnBackendGetAttribute: attribute %d has type %d, not %d",
                  name, rule->type, type);
  const auto at = object->attributes.find(name);
  const int64_t there = at == object->attributes.end() ? 0 : at->second.count;
  // Room for nothing asks for the number there is (of engines the library gives an upper bound); else the answer is the
  // number written.
  const int64_t bound = name == CUDNN_ATTR_ENGINEHEUR_RESULTS ? there + 3 : there;
  if (count) *count = room > 0 ? std::min(room, there) : bound;
  return room > 0 && values && there > 0 ? copy_out(at->second, room, values) : CUDNN_STATUS_SUCCESS;
}

void cudnnGetLastErrorString(char* message, size_t room) {
  if (message && room > 0) std::snprintf(message, room, "%s", last_error.c_str());
  last_error.clear();
}

}  // extern "C"
