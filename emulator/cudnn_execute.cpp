// The fake cuDNN's handle, plans, variant packs, and the execution on the handle's stream.
#include <algorithm>
#include <mutex>
#include <set>

#include "emulator/cudnn_plan.h"
#include "emulator/runtime.h"

struct cudnnContext {
  cudaStream_t stream = nullptr;
  int device = 0;
};

namespace simclr::emulator::cudnn {
namespace {

std::mutex& handle_lock() {
  static auto* lock = new std::mutex;
  return *lock;
}
std::set<const cudnnContext*>& live_handles() {
  static auto* handles = new std::set<const cudnnContext*>;
  return *handles;
}
bool is_live(const cudnnContext* handle) {
  const std::lock_guard guard(handle_lock());
  return live_handles().count(handle) != 0;
}

ObjectPtr engine_of_plan(const Object& plan) {
  return plan.object(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)->object(CUDNN_ATTR_ENGINECFG_ENGINE);
}

Convolution convolution_of_engine(const Object& engine) {
  const ObjectPtr graph = engine.object(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
  return read_convolution(*graph->object(CUDNN_ATTR_OPERATIONGRAPH_OPS));
}

struct Range {
  const char* name;
  void* begin;
  size_t bytes;
  bool overlaps(const Range& o) const {
    const auto a = reinterpret_cast<uintptr_t>(begin), b = reinterpret_cast<uintptr_t>(o.begin);
    return bytes > 0 && o.bytes > 0 && a < b + o.bytes && b < a + bytes;
  }
};

}  // namespace

cudnnStatus_t finalize_plan(Object& plan) {
  if (!is_live(plan.value<cudnnHandle_t>(CUDNN_ATTR_EXECUTION_PLAN_HANDLE)))
    return misuse(CUDNN_STATUS_BAD_PARAM, "a plan for a handle that does not exist");
  if (plan.object(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)->type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
    return misuse(CUDNN_STATUS_BAD_PARAM, "a plan of something that is not an engine configuration");
  const ObjectPtr engine = engine_of_plan(plan);
  const auto index = engine->value<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  if (index == kUselessEngine)
    return decline(CUDNN_STATUS_NOT_SUPPORTED, "engine %lld makes no plan", static_cast<long long>(index));
  plan.put<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
                    {workspace_of(index, convolution_of_engine(*engine))});
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize_pack(const Object& pack) {
  auto ids = pack.values<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  if (ids.size() != pack.values<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).size())
    return misuse(CUDNN_STATUS_BAD_PARAM, "a variant pack with another number of ids than of pointers");
  std::sort(ids.begin(), ids.end());
  if (std::adjacent_find(ids.begin(), ids.end()) != ids.end())
    return misuse(CUDNN_STATUS_BAD_PARAM, "a variant pack with the same id twice");
  return CUDNN_STATUS_SUCCESS;
}

namespace {

// Everything that can be known when the call is made; then the work is queued.
cudnnStatus_t execute(cudnnContext* handle, const Object& plan, const Object& pack) {
  if (plan.value<cudnnHandle_t>(CUDNN_ATTR_EXECUTION_PLAN_HANDLE) != handle)
    return misuse(CUDNN_STATUS_BAD_PARAM, "cudnnBackendExecute: the plan was made for another handle");
  const ObjectPtr engine = engine_of_plan(plan);
  const auto index = engine->value<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  const Convolution v = convolution_of_engine(*engine);
  const auto ids = pack.values<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = pack.values<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  Range ranges[] = {{"x", nullptr, v.x.extent_bytes()},
                    {"the filter", nullptr, v.filter.extent_bytes()},
                    {"y", nullptr, v.y.extent_bytes()},
                    {"the workspace", nullptr, static_cast<size_t>(workspace_of(index, v))}};
  const Tensor* tensors[] = {&v.x, &v.filter, &v.y};
  for (size_t i = 0; i < 3; ++i) {
    const auto found = std::find(ids.begin(), ids.end(), tensors[i]->id);
    if (found == ids.end())
      return misuse(CUDNN_STATUS_BAD_PARAM, "cudnnBackendExecute: the variant pack has no pointer for %s (id %lld)",
                    ranges[i].name, static_cast<long long>(tensors[i]->id));
    ranges[i].begin = pointers[found - ids.begin()];
    if (reinterpret_cast<uintptr_t>(ranges[i].begin) % static_cast<uintptr_t>(tensors[i]->alignment) != 0)
      return misuse(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, "cudnnBackendExecute: %s is not aligned to %lld bytes",
                    ranges[i].name, static_cast<long long>(tensors[i]->alignment));
  }
  if (pack.has(CUDNN_ATTR_VARIANT_PACK_WORKSPACE))
    ranges[3].begin = pack.value<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  if (reinterpret_cast<uintptr_t>(ranges[3].begin) % 16 != 0)
    return misuse(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
                  "cudnnBackendExecute: the workspace is not aligned to 16 bytes");
  for (const Range& r : ranges)
    if (!inside_device(r.begin, r.bytes, handle->device))
      return misuse(CUDNN_STATUS_BAD_PARAM, "cudnnBackendExecute: %s takes %zu bytes, its pointer is %s", r.name,
                    r.bytes, describe_pointer(r.begin));
  const Tensor& output = v.output();
  const size_t out = &output == &v.x ? 0 : &output == &v.filter ? 1 : 2;
  for (size_t i = 0; i < 4; ++i)
    for (size_t j = 0; j < i; ++j)
      if ((i == 3 || i == out || j == out) && ranges[i].overlaps(ranges[j]))
        return misuse(CUDNN_STATUS_BAD_PARAM, "cudnnBackendExecute: %s overlaps %s", ranges[i].name, ranges[j].name);

  const auto work = [v, index, x = ranges[0].begin, filter = ranges[1].begin, y = ranges[2].begin,
                     output_data = ranges[out].begin, workspace = ranges[3]] {
    if (workspace.bytes > 0) std::memset(workspace.begin, 0xFF, workspace.bytes);  // it is the library's to spoil
    compute(v, x, filter, y, output_data, index == kTensorCoreEngine);
  };
  return enqueue(handle->stream, "cudnnBackendExecute", work) == cudaSuccess ? CUDNN_STATUS_SUCCESS
                                                                             : CUDNN_STATUS_EXECUTION_FAILED;
}

}  // namespace
}  // namespace simclr::emulator::cudnn

using namespace simclr::emulator;         // NOLINT: the entry points below stand outside of every namespace
using namespace simclr::emulator::cudnn;  // NOLINT

extern "C" {

size_t cudnnGetVersion() {
  return CUDNN_VERSION;
}

size_t cudnnGetCudartVersion() {
  return CUDART_VERSION;
}

const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_INITIALIZED:
      return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_BAD_PARAM_NULL_POINTER:
      return "CUDNN_STATUS_BAD_PARAM_NULL_POINTER";
    case CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER:
      return "CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER";
    case CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED:
      return "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED";
    case CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE:
      return "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_EXECUTION_FAILED:
      return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
      return "a status that the fake cuDNN does not use";
  }
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (!handle) return misuse(CUDNN_STATUS_BAD_PARAM, "cudnnCreate: no place for the result");
  if (device_available() != cudaSuccess) return decline(CUDNN_STATUS_NOT_INITIALIZED, "there is no device");
  auto* made = new cudnnContext{nullptr, current_device()};
  const std::lock_guard guard(handle_lock());
  live_handles().insert(made);
  *handle = made;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  if (!handle) return CUDNN_STATUS_SUCCESS;
  const std::lock_guard guard(handle_lock());
  if (live_handles().erase(handle) == 0)
    return misuse(CUDNN_STATUS_BAD_PARAM, "cudnnDestroy: no handle, or destroyed before");
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  if (!is_live(handle)) return misuse(CUDNN_STATUS_BAD_PARAM, "cudnnSetStream: no handle, or a destroyed one");
  if (!check_stream(stream, "cudnnSetStream")) return CUDNN_STATUS_BAD_PARAM;
  if (stream_device(stream) != handle->device)
    return misuse(CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH, "cudnnSetStream: stream and handle are of different devices");
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  if (!is_live(handle) || !stream) return misuse(CUDNN_STATUS_BAD_PARAM, "cudnnGetStream: no handle or no place");
  *stream = handle->stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  if (!is_live(handle)) return misuse(CUDNN_STATUS_BAD_PARAM, "cudnnBackendExecute: no handle, or a destroyed one");
  const auto plan_object = find_object(plan), pack_object = find_object(pack);
  if (!plan_object || plan_object->type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR || !plan_object->finalized)
    return misuse(CUDNN_STATUS_BAD_PARAM, "cudnnBackendExecute: the plan is none, or not finalized");
  if (!pack_object || pack_object->type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR || !pack_object->finalized)
    return misuse(CUDNN_STATUS_BAD_PARAM, "cudnnBackendExecute: the variant pack is none, or not finalized");
  return execute(handle, *plan_object, *pack_object);
}

}  // extern "C"
