// Which attributes the objects of the fake cuDNN have, with type and number, from the tables of NVIDIA's backend
// documentation (https://docs.nvidia.com/deeplearning/cudnn/backend/latest/api/cudnn-graph-library.html).
#include <algorithm>

#include "emulator/cudnn_objects.h"

namespace simclr::emulator::cudnn {
namespace {

constexpr auto kTensor = CUDNN_BACKEND_TENSOR_DESCRIPTOR;
constexpr auto kConvolution = CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR;
constexpr auto kForward = CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR;
constexpr auto kData = CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
constexpr auto kFilter = CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
constexpr auto kGraph = CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR;
constexpr auto kHeuristics = CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR;
constexpr auto kEngine = CUDNN_BACKEND_ENGINE_DESCRIPTOR;
constexpr auto kKnob = CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR;
constexpr auto kConfig = CUDNN_BACKEND_ENGINECFG_DESCRIPTOR;
constexpr auto kPlan = CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR;
constexpr auto kPack = CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR;
constexpr auto kObject = CUDNN_TYPE_BACKEND_DESCRIPTOR;
constexpr auto kInteger = CUDNN_TYPE_INT64;

constexpr AttributeRule kRules[] = {
    {kTensor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE},
    {kTensor, CUDNN_ATTR_TENSOR_DIMENSIONS, kInteger, 4, 4},
    {kTensor, CUDNN_ATTR_TENSOR_STRIDES, kInteger, 4, 4},
    {kTensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, kInteger},
    {kTensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kInteger},
    {kConvolution, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, kInteger},
    {kConvolution, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE},
    {kConvolution, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE},
    {kConvolution, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, kInteger, 2, 2},
    {kConvolution, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, kInteger, 2, 2},
    {kConvolution, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, kInteger, 2, 2},
    {kConvolution, CUDNN_ATTR_CONVOLUTION_DILATIONS, kInteger, 2, 2},
    {kForward, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, kObject},
    {kForward, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, kObject},
    {kForward, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, kObject},
    {kForward, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, kObject},
    {kForward, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT},
    {kForward, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT},
    {kData, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, kObject},
    {kData, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, kObject},
    {kData, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, kObject},
    {kData, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, kObject},
    {kData, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_TYPE_FLOAT},
    {kData, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_TYPE_FLOAT},
    {kFilter, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, kObject},
    {kFilter, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, kObject},
    {kFilter, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, kObject},
    {kFilter, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, kObject},
    {kFilter, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_TYPE_FLOAT},
    {kFilter, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, CUDNN_TYPE_FLOAT},
    {kGraph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 0, 1},
    {kGraph, CUDNN_ATTR_OPERATIONGRAPH_OPS, kObject, 1, 64},
    {kHeuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, kObject},
    {kHeuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE},
    {kHeuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, kObject, 0, 0},
    {kEngine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, kObject},
    {kEngine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, kInteger},
    {kEngine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, 0, 0},
    {kEngine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, 0, 0},
    {kKnob, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE},
    {kKnob, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, kInteger},
    {kConfig, CUDNN_ATTR_ENGINECFG_ENGINE, kObject},
    {kConfig, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, kObject, 0, CUDNN_KNOB_TYPE_COUNTS},
    {kPlan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE},
    {kPlan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, kObject},
    {kPlan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, kInteger, 0, 0},
    {kPack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, kInteger, 1, 64},
    {kPack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 1, 64},
    {kPack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 0, 1},
};

}  // namespace

bool is_known(cudnnBackendDescriptorType_t object) {
  return std::any_of(std::begin(kRules), std::end(kRules), [&](const auto& rule) { return rule.object == object; });
}

const AttributeRule* find_rule(cudnnBackendDescriptorType_t object, int name) {
  for (const auto& rule : kRules)
    if (rule.object == object && rule.name == name) return &rule;
  return nullptr;
}

const AttributeRule* find_missing(const Object& object) {
  for (const auto& rule : kRules)
    if (rule.object == object.type && rule.least > 0 && !object.has(rule.name)) return &rule;
  return nullptr;
}

size_t size_of_value(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
      return 8;
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return sizeof(void*);
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return 1;
    default:
      return sizeof(int);  // the enumerations, float
  }
}

}  // namespace simclr::emulator::cudnn
