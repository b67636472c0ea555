#include "kernels/conv2d/cudnn_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "kernels/conv2d/cudnn_plan_name.h"

namespace simclr::cudnn {
namespace {

// Ids that tie the pointers of a call to the tensors of the graph.
enum TensorId : int64_t { kX = 1, kFilter = 2, kY = 3 };
constexpr int64_t kAlignment = 16;  // bytes, of every tensor

cudnnDataType_t storage(Precision precision) {
  return precision == Precision::kBf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

// [n, c, h, w] in that order for the library, in memory channels innermost.
Descriptor make_tensor(TensorId id, cudnnDataType_t type, const std::array<int64_t, 4>& d) {
  Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, {d[0], d[1], d[2], d[3]})
      .set(CUDNN_ATTR_TENSOR_STRIDES, {d[1] * d[2] * d[3], 1, d[3] * d[1], d[1]})
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, {id})
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, {kAlignment})
      .finalize("describing a tensor");
  return tensor;
}

Descriptor make_convolution(const ConvShape& s) {
  Descriptor convolution(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  convolution.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, {2})
      .set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {s.padding, s.padding})
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, {s.padding, s.padding})
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {s.stride, s.stride})
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, {1, 1})
      .finalize("describing a convolution");
  return convolution;
}

// The same operation has other names in each pass.
struct PassNames {
  const char* text;
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t x, filter, y, convolution, alpha, beta;
};

const PassNames& names_of(ConvPass pass) {
  static constexpr PassNames kNames[] = {
      {"forward", CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
      {"backward data", CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
      {"backward filter", CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};
  return kNames[index_of(pass)];
}

const char* text_of(Precision precision) {
  return precision == Precision::kFp32 ? "fp32" : precision == Precision::kTf32 ? "tf32" : "bf16";
}

// parts: the graph first, then what it refers to.
std::vector<Descriptor> make_graph(const ConvRequest& request) {
  const ConvShape& s = request.shape;
  const PassNames& names = names_of(request.pass);
  const cudnnDataType_t type = storage(request.precision);
  std::vector<Descriptor> parts;
  parts.emplace_back(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  parts.push_back(make_tensor(kX, type, {s.samples, s.in_channels, s.height, s.width}));
  parts.push_back(make_tensor(kFilter, type, {s.out_channels, s.in_channels, s.kernel, s.kernel}));
  parts.push_back(make_tensor(kY, type, {s.samples, s.out_channels, s.out_height(), s.out_width()}));
  parts.push_back(make_convolution(s));
  Descriptor operation(names.type);
  operation.set(names.x, parts[1])
      .set(names.filter, parts[2])
      .set(names.y, parts[3])
      .set(names.convolution, parts[4])
      .set(names.alpha, CUDNN_TYPE_FLOAT, 1.0F)
      .set(names.beta, CUDNN_TYPE_FLOAT, 0.0F)
      .finalize("describing an operation");
  parts[0].set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  parts.push_back(std::move(operation));
  return parts;
}

void finalize_graph(const PlanTarget& target, Descriptor& graph) {
  if (target.handle()) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, target.handle());
  graph.finalize("describing a graph");
}

std::vector<Descriptor> ask_heuristics(const PlanTarget& target, const Descriptor& graph, cudnnBackendHeurMode_t mode) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  target.apply(heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
  if (!heuristics.try_finalize()) return {};  // no engine at all for this graph
  int64_t count = 0;
  check(cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                                 &count, nullptr),
        "counting the engines of a convolution");
  return heuristics.read_descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, count);
}

Descriptor engine_of(const Descriptor& config) {
  auto engines = config.read_descriptors(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
  SIMCLR_CHECK(engines.size() == 1, "a cuDNN engine configuration without an engine");
  return std::move(engines[0]);
}

bool engine_passes(Precision precision, const Descriptor& engine) {
  return passes_filters(
      precision, engine.read<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                                          CUDNN_NUMERICAL_NOTE_TYPE_COUNT));
}

std::string name_of(const Descriptor& config, const Descriptor& engine) {
  PlanName name{engine.read_one<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64), {}};
  const auto knobs = config.read_descriptors(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
                                             CUDNN_KNOB_TYPE_COUNTS);
  for (const Descriptor& knob : knobs)
    name.knobs.emplace_back(
        knob.read_one<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE),
        knob.read_one<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64));
  return name.text();
}

// The plan of a configuration, or nothing where it does not finalize or requires too much workspace.
std::optional<Descriptor> try_plan(const PlanTarget& target, const Descriptor& config) {
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  target.apply_to_plan(plan);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  if (!plan.try_finalize()) return std::nullopt;
  if (plan.read_one<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64) > kWorkspaceCap)
    return std::nullopt;
  return plan;
}

}  // namespace

std::string ConvRequest::text() const {
  return fmt::format("{} {} [{}, {}, {}, {}] -> {} channels, kernel {}, stride {}, padding {}", names_of(pass).text,
                     text_of(precision), shape.samples, shape.height, shape.width, shape.in_channels,
                     shape.out_channels, shape.kernel, shape.stride, shape.padding);
}

PlanTarget PlanTarget::from_properties(const std::string& json) {
  PlanTarget target(nullptr);
  Descriptor& properties = target.properties_.emplace_back(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  properties
      .set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
           std::span<const char>(json.c_str(), json.size() + 1))
      .finalize("describing a device");
  return target;
}

void PlanTarget::apply(Descriptor& descriptor, cudnnBackendAttributeName_t properties) const {
  if (!properties_.empty()) descriptor.set(properties, properties_[0]);
}

void PlanTarget::apply_to_plan(Descriptor& plan) const {
  if (handle_) plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle_);
  apply(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
}

bool passes_filters(Precision precision, const std::vector<cudnnBackendNumericalNote_t>& notes) {
  const auto has = [&](cudnnBackendNumericalNote_t note) {
    return std::find(notes.begin(), notes.end(), note) != notes.end();
  };
  if (has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) || has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)) return false;
  return precision != Precision::kFp32 ||
         !(has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE) || has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS));
}

// parts: graph and what it refers to, then engine and engine configuration.
ConvPlan::ConvPlan(const ConvRequest& request, std::vector<Descriptor> parts, Descriptor plan)
    : request_(request), parts_(std::move(parts)), plan_(std::move(plan)) {
  name_ = name_of(parts_.back(), parts_[parts_.size() - 2]);
  workspace_bytes_ = plan_.read_one<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64);
}

ConvPlan ConvPlan::choose(const PlanTarget& target, const ConvRequest& request) {
  std::vector<Descriptor> parts = make_graph(request);
  finalize_graph(target, parts[0]);
  int64_t seen = 0, filtered = 0;
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (Descriptor& config : ask_heuristics(target, parts[0], mode)) {
      ++seen;
      Descriptor engine = engine_of(config);
      if (!engine_passes(request.precision, engine)) {
        ++filtered;
        continue;
      }
      auto plan = try_plan(target, config);
      if (!plan) continue;
      parts.push_back(std::move(engine));
      parts.push_back(std::move(config));
      return {request, std::move(parts), std::move(*plan)};
    }
  }
  fail(
      ExitCode::kDevice,
      "cuDNN {} has no plan for the convolution {}: of {} engine configurations {} fail the filters of this precision, "
      "the others do not finalize or require more than {} MiB; choose another run.precision or model.encoder.width",
      cudnnGetVersion(), request.text(), seen, filtered, kWorkspaceCap >> 20);
}

ConvPlan ConvPlan::from_name(const PlanTarget& target, const ConvRequest& request, const std::string& name) {
  const PlanName wanted = PlanName::parse(name);
  std::vector<Descriptor> parts = make_graph(request);
  finalize_graph(target, parts[0]);
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, parts[0]).set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, {wanted.engine});
  target.apply(engine, CUDNN_ATTR_ENGINE_DEVICEPROP);
  engine.finalize(("making '" + name + "' for " + request.text()).c_str());
  if (!engine_passes(request.precision, engine))
    fail(ExitCode::kDevice, "cuDNN's '{}' does not pass the filters for the convolution {}", name, request.text());
  std::vector<cudnnBackendDescriptor_t> knobs;
  for (const auto& [type, value] : wanted.knobs) {
    Descriptor knob(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    knob.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, static_cast<cudnnBackendKnobType_t>(type))
        .set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, {value})
        .finalize("setting a knob of an engine");
    knobs.push_back(knob.get());
    parts.push_back(std::move(knob));
  }
  Descriptor config(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  config.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  if (!knobs.empty())
    config.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
               std::span<const cudnnBackendDescriptor_t>(knobs));
  config.finalize("configuring an engine");
  auto plan = try_plan(target, config);
  if (!plan)
    fail(ExitCode::kDevice, "cuDNN {} makes no plan of '{}' for the convolution {}", cudnnGetVersion(), name,
         request.text());
  parts.push_back(std::move(engine));
  parts.push_back(std::move(config));
  return {request, std::move(parts), std::move(*plan)};
}

void ConvPlan::run(cudnnHandle_t handle, void* x, void* filter, void* y, void* workspace) const {
  void* const pointers[] = {x, filter, y};
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, {kX, kFilter, kY})
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, std::span<void* const>(pointers))
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace)
      .finalize("binding the tensors of a convolution");
  check(cudnnBackendExecute(handle, plan_.get(), pack.get()), "a convolution");
}

}  // namespace simclr::cudnn
