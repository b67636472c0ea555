// The objects of the fake cuDNN one by one: what finalizing checks, and the engines. The heuristics rank first what a
// careful caller must skip: an engine that is not deterministic, one that needs more workspace than any GPU has,
// one that no plan can be made of. EMULATOR_CUDNN_ENGINES makes another version of the library of it: "reversed" ranks
// them the other way round, "plain" has only the engine that takes everything, "none" only those to be skipped.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <string_view>

#include "emulator/cudnn_convolution.h"
#include "emulator/cudnn_plan.h"
#include "emulator/runtime.h"

namespace simclr::emulator::cudnn {
namespace {

struct EngineKind {
  int64_t index;
  std::vector<cudnnBackendNumericalNote_t> notes;
  std::vector<std::pair<cudnnBackendKnobType_t, int64_t>> knobs;  // with the greatest value
  bool float32_only = false;
};

const std::vector<EngineKind>& engines() {
  static const auto* kinds = new std::vector<EngineKind>{
      {kPlainEngine, {CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP}, {}},
      {kAtomicEngine, {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, {{CUDNN_KNOB_TYPE_TILE_SIZE, 8}}},
      {kTensorCoreEngine,
       {CUDNN_NUMERICAL_NOTE_TENSOR_CORE},
       {{CUDNN_KNOB_TYPE_TILE_SIZE, 8}, {CUDNN_KNOB_TYPE_STAGES, 4}}},
      {kHungryEngine, {}, {}},
      {kUselessEngine, {}, {{CUDNN_KNOB_TYPE_TILE_SIZE, 8}}},
      {kTiledEngine, {}, {{CUDNN_KNOB_TYPE_TILE_SIZE, 8}, {CUDNN_KNOB_TYPE_EDGE, 1}}, true},
  };
  return *kinds;
}

enum class Offer { kUsual, kReversed, kPlain, kNone };
Offer offer() {
  static const Offer read = [] {
    const char* text = std::getenv("EMULATOR_CUDNN_ENGINES");
    const std::string_view word = text ? text : "usual";
    if (word == "usual" || word.empty()) return Offer::kUsual;
    if (word == "reversed") return Offer::kReversed;
    if (word == "plain") return Offer::kPlain;
    if (word == "none") return Offer::kNone;
    complain("EMULATOR_CUDNN_ENGINES=%s is none of usual, reversed, plain, none", text);
    std::_Exit(2);
  }();
  return read;
}

const EngineKind* find_engine(int64_t index) {
  if (offer() == Offer::kPlain && index != kPlainEngine) return nullptr;
  for (const auto& kind : engines())
    if (kind.index == index) return &kind;
  return nullptr;
}

ObjectPtr make_object(cudnnBackendDescriptorType_t type, const std::function<void(Object&)>& fill) {
  auto object = std::make_shared<Object>();
  object->type = type;
  fill(*object);
  object->finalized = true;
  return object;
}

ObjectPtr make_config(const ObjectPtr& graph, const EngineKind& kind, int64_t knob_value) {
  const ObjectPtr engine = make_object(CUDNN_BACKEND_ENGINE_DESCRIPTOR, [&](Object& o) {
    o.put(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, {graph});
    o.put<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, {kind.index});
    o.put(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, kind.notes);
  });
  std::vector<ObjectPtr> knobs;
  for (const auto& [type, most] : kind.knobs)
    knobs.push_back(make_object(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, [&, type = type, most = most](Object& o) {
      o.put<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, {type});
      o.put<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, {std::min(knob_value, most)});
    }));
  return make_object(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, [&](Object& o) {
    o.put(CUDNN_ATTR_ENGINECFG_ENGINE, {engine});
    o.put(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, knobs);
  });
}

Convolution convolution_of_graph(const Object& graph) {
  return read_convolution(*graph.object(CUDNN_ATTR_OPERATIONGRAPH_OPS));
}

// Like the library on an A100: one storage type throughout; a float32 filter gradient of bfloat16 tensors has no
// engine.
bool has_engines(const Convolution& v) {
  return v.x.type == v.y.type && v.x.type == v.filter.type;
}

bool is_operation(const Object& o) {
  return o.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ||
         o.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ||
         o.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
}

}  // namespace

cudnnStatus_t finalize_tensor(const Object& tensor) {
  const Tensor t = read_tensor(tensor);
  if (t.type != CUDNN_DATA_FLOAT && t.type != CUDNN_DATA_BFLOAT16)
    return misuse(CUDNN_STATUS_NOT_SUPPORTED, "a tensor of data type %d; the fake has float and bfloat16", t.type);
  for (size_t i = 0; i < 4; ++i)
    if (t.dims[i] < 1 || t.strides[i] < 1)
      return misuse(CUDNN_STATUS_BAD_PARAM, "a tensor with dimension %lld and stride %lld",
                    static_cast<long long>(t.dims[i]), static_cast<long long>(t.strides[i]));
  if (t.alignment < 1 || t.alignment % static_cast<int64_t>(t.element_bytes()) != 0)
    return misuse(CUDNN_STATUS_BAD_PARAM, "a tensor aligned to %lld bytes", static_cast<long long>(t.alignment));
  // No two elements in one place: in the order of their strides, each dimension steps over the one before.
  std::array<size_t, 4> order{0, 1, 2, 3};
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return t.strides[a] < t.strides[b]; });
  int64_t covered = 1;
  for (const size_t i : order) {
    if (t.dims[i] == 1) continue;
    if (t.strides[i] < covered)
      return misuse(CUDNN_STATUS_BAD_PARAM, "a tensor whose elements overlap: dimension %zu has stride %lld", i,
                    static_cast<long long>(t.strides[i]));
    covered = t.strides[i] * (t.dims[i] - 1) + covered;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize_convolution(const Object& c) {
  const auto pre = c.values<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  const auto post = c.values<int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
  const auto stride = c.values<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  const auto dilation = c.values<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  if (c.value<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS) != 2)
    return misuse(CUDNN_STATUS_NOT_SUPPORTED, "a convolution that is not two-dimensional");
  for (size_t i = 0; i < 2; ++i)
    if (pre[i] < 0 || stride[i] < 1 || dilation[i] < 1)
      return misuse(CUDNN_STATUS_BAD_PARAM, "a convolution with padding %lld, stride %lld, dilation %lld",
                    static_cast<long long>(pre[i]), static_cast<long long>(stride[i]),
                    static_cast<long long>(dilation[i]));
  if (pre != post) return misuse(CUDNN_STATUS_NOT_SUPPORTED, "a convolution whose two paddings differ");
  if (c.value<cudnnConvolutionMode_t>(CUDNN_ATTR_CONVOLUTION_CONV_MODE) != CUDNN_CROSS_CORRELATION)
    return misuse(CUDNN_STATUS_NOT_SUPPORTED, "a convolution with a flipped filter");
  if (c.value<cudnnDataType_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE) != CUDNN_DATA_FLOAT)
    return misuse(CUDNN_STATUS_NOT_SUPPORTED, "a convolution that does not compute in float");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize_operation(const Object& operation) {
  for (const auto& [name, attribute] : operation.attributes) {
    if (attribute.objects.empty()) continue;
    const bool is_convolution = name == CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC ||
                                name == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC ||
                                name == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC;
    const auto wanted = is_convolution ? CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR : CUDNN_BACKEND_TENSOR_DESCRIPTOR;
    if (attribute.objects[0]->type != wanted)
      return misuse(CUDNN_STATUS_BAD_PARAM, "attribute %d of an operation is an object of type %d", name,
                    attribute.objects[0]->type);
  }
  const Convolution v = read_convolution(operation);
  if (v.x.dims[1] != v.filter.dims[1])
    return misuse(v.x.dims[1] % v.filter.dims[1] == 0 ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_BAD_PARAM,
                  "x has %lld channels, the filter takes %lld (the fake has no groups)",
                  static_cast<long long>(v.x.dims[1]), static_cast<long long>(v.filter.dims[1]));
  if (v.y.dims[0] != v.x.dims[0] || v.y.dims[1] != v.filter.dims[0])
    return misuse(CUDNN_STATUS_BAD_PARAM,
                  "y has %lld samples of %lld channels, x %lld samples, the filter makes %lld channels",
                  static_cast<long long>(v.y.dims[0]), static_cast<long long>(v.y.dims[1]),
                  static_cast<long long>(v.x.dims[0]), static_cast<long long>(v.filter.dims[0]));
  for (size_t i = 0; i < 2; ++i) {
    const int64_t reach = (v.filter.dims[i + 2] - 1) * v.dilation[i] + 1;
    const int64_t size = (v.x.dims[i + 2] + 2 * v.padding[i] - reach) / v.stride[i] + 1;
    if (v.x.dims[i + 2] + 2 * v.padding[i] < reach || v.y.dims[i + 2] != size)
      return misuse(CUDNN_STATUS_BAD_PARAM, "y has %lld places along dimension %zu, the convolution makes %lld",
                    static_cast<long long>(v.y.dims[i + 2]), i, static_cast<long long>(size));
  }
  if (v.x.id == v.y.id || v.x.id == v.filter.id || v.y.id == v.filter.id)
    return misuse(CUDNN_STATUS_BAD_PARAM, "two tensors of a convolution have the same id");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize_graph(const Object& graph) {
  const Attribute& operations = graph.attributes.at(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  if (operations.count != 1 || !is_operation(*operations.objects[0]))
    return misuse(CUDNN_STATUS_NOT_SUPPORTED, "a graph of %lld operations; the fake takes one convolution",
                  static_cast<long long>(operations.count));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize_heuristics(Object& heuristics) {
  const ObjectPtr graph = heuristics.object(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  if (graph->type != CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)
    return misuse(CUDNN_STATUS_BAD_PARAM, "heuristics for an object of type %d", graph->type);
  const auto mode = heuristics.value<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE);
  const Convolution v = convolution_of_graph(*graph);
  std::vector<int64_t> ranking;
  if (has_engines(v) && offer() == Offer::kNone) {
    if (mode != CUDNN_HEUR_MODE_FALLBACK) ranking = {kAtomicEngine, kHungryEngine, kUselessEngine};
  } else if (has_engines(v)) {
    if (mode == CUDNN_HEUR_MODE_FALLBACK || offer() == Offer::kPlain) {
      ranking = {kPlainEngine};
    } else {
      ranking = {kAtomicEngine, kHungryEngine, kUselessEngine, kTensorCoreEngine};
      if (v.x.type == CUDNN_DATA_FLOAT) ranking.push_back(kTiledEngine);
      ranking.push_back(kPlainEngine);
      if (offer() == Offer::kReversed) std::reverse(ranking.begin(), ranking.end());
    }
  }
  std::vector<ObjectPtr> configs;
  for (const int64_t index : ranking) configs.push_back(make_config(graph, *find_engine(index), v.y.dims[0] % 5));
  heuristics.put(CUDNN_ATTR_ENGINEHEUR_RESULTS, configs);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize_engine(Object& engine) {
  const auto index = engine.value<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  const EngineKind* kind = find_engine(index);
  if (!kind) return decline(CUDNN_STATUS_BAD_PARAM, "there is no engine %lld", static_cast<long long>(index));
  const Convolution v = convolution_of_graph(*engine.object(CUDNN_ATTR_ENGINE_OPERATION_GRAPH));
  if (!has_engines(v) || (kind->float32_only && v.x.type != CUDNN_DATA_FLOAT))
    return decline(CUDNN_STATUS_NOT_SUPPORTED, "engine %lld does not take these tensors",
                   static_cast<long long>(index));
  engine.put(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, kind->notes);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize_config(const Object& config) {
  const ObjectPtr engine = config.object(CUDNN_ATTR_ENGINECFG_ENGINE);
  if (engine->type != CUDNN_BACKEND_ENGINE_DESCRIPTOR)
    return misuse(CUDNN_STATUS_BAD_PARAM, "a configuration of an object of type %d", engine->type);
  const EngineKind& kind = *find_engine(engine->value<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  const auto knobs = config.attributes.find(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES);
  if (knobs == config.attributes.end()) return CUDNN_STATUS_SUCCESS;
  for (const ObjectPtr& knob : knobs->second.objects) {
    const auto type = knob->value<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE);
    const auto value = knob->value<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
    const auto found =
        std::find_if(kind.knobs.begin(), kind.knobs.end(), [&](const auto& k) { return k.first == type; });
    if (found == kind.knobs.end() || value < 0 || value > found->second)
      return decline(CUDNN_STATUS_BAD_PARAM, "engine %lld has no knob %d with value %lld",
                     static_cast<long long>(kind.index), type, static_cast<long long>(value));
  }
  return CUDNN_STATUS_SUCCESS;
}

int64_t workspace_of(int64_t engine, const Convolution& v) {
  switch (engine) {
    case kHungryEngine:
      return int64_t{1} << 40;
    case kTensorCoreEngine:
      return 0;
    case kTiledEngine:  // odd on purpose: a workspace need not be a round number of bytes
      return static_cast<int64_t>(v.x.extent_bytes() / 4) + 1037;
    default:
      return 1024;
  }
}

}  // namespace simclr::emulator::cudnn
