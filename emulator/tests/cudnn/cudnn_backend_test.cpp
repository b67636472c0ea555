// The rules of cuDNN's backend objects as NVIDIA documents them. Built twice: against the real library, which answers
// without a GPU, and against the fake, which has to answer alike.
#include <gtest/gtest.h>

#include "emulator/tests/cudnn/raw_graph.h"

namespace simclr::test {
namespace {

constexpr auto kOk = CUDNN_STATUS_SUCCESS;

class CudnnBackend : public testing::Test {
 protected:
  Handle tensor(const TensorFields& fields) {
    const Handle t = make_tensor(objects_, fields);
    EXPECT_EQ(cudnnBackendFinalize(t), kOk);
    return t;
  }
  cudnnStatus_t finalized_tensor(const TensorFields& fields) {
    return cudnnBackendFinalize(make_tensor(objects_, fields));
  }
  cudnnStatus_t finalized_convolution(const ConvolutionFields& fields) {
    return cudnnBackendFinalize(make_convolution(objects_, fields));
  }
  // 2 samples, 8 -> 16 channels, 3x3, 4x4 pixels.
  OperationFields usual() {
    const Handle c = make_convolution(objects_, {});
    EXPECT_EQ(cudnnBackendFinalize(c), kOk);
    return {.x = tensor({}),
            .filter = tensor({.dims = {16, 8, 3, 3}, .strides = {72, 1, 24, 8}, .id = 2}),
            .y = tensor({.dims = {2, 16, 4, 4}, .strides = {256, 1, 64, 16}, .id = 3}),
            .convolution = c};
  }
  cudnnStatus_t finalized_operation(const OperationFields& fields) {
    return cudnnBackendFinalize(make_operation(objects_, kForwardPass, fields));
  }
  Objects objects_;
};

TEST_F(CudnnBackend, TensorNeedsShapeAndAlignment) {
  EXPECT_EQ(finalized_tensor({}), kOk);
  for (const int name : {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT})
    EXPECT_EQ(finalized_tensor({.left_out = name}), CUDNN_STATUS_BAD_PARAM) << name;
}

TEST_F(CudnnBackend, TensorRefusesImpossibleShapes) {
  EXPECT_EQ(finalized_tensor({.dims = {2, 8, 4, -1}}), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(finalized_tensor({.strides = {128, 1, 32}}), CUDNN_STATUS_BAD_PARAM);  // three strides of four dimensions
  EXPECT_EQ(finalized_tensor({.strides = {-128, 1, 32, 8}}), CUDNN_STATUS_BAD_PARAM);
  for (const int64_t alignment : {3, 0, -16})
    EXPECT_EQ(finalized_tensor({.alignment = alignment}), CUDNN_STATUS_BAD_PARAM) << alignment;
}

TEST_F(CudnnBackend, AttributesAreSetBeforeFinalizingAndReadAfter) {
  const Handle t = make_tensor(objects_, {});
  int64_t count = -1, dims[8] = {};
  const auto read = [&](cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t room) {
    return cudnnBackendGetAttribute(t, name, type, room, &count, room > 0 ? dims : nullptr);
  };
  EXPECT_EQ(read(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 8), CUDNN_STATUS_NOT_INITIALIZED);
  ASSERT_EQ(cudnnBackendFinalize(t), kOk);
  EXPECT_EQ(cudnnBackendFinalize(t), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(set_integers(t, CUDNN_ATTR_TENSOR_UNIQUE_ID, {9}), CUDNN_STATUS_BAD_PARAM);

  EXPECT_EQ(read(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 0), kOk);
  EXPECT_EQ(count, 4);  // how many there are
  EXPECT_EQ(read(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 2), kOk);
  EXPECT_EQ(count, 2);  // how many were written
  EXPECT_EQ(dims[0], 2);
  EXPECT_EQ(dims[1], 8);
  EXPECT_EQ(dims[2], 0);
  EXPECT_EQ(read(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 8), kOk);
  EXPECT_EQ(count, 4);
  EXPECT_EQ(read(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_FLOAT, 8), CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
  EXPECT_EQ(read(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 8), CUDNN_STATUS_BAD_PARAM);
}

TEST_F(CudnnBackend, AttributesHaveTypeAndNumber) {
  const Handle t = make_tensor(objects_, {});
  EXPECT_EQ(set(t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_FLOAT, std::vector<float>(4)),
            CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
  EXPECT_EQ(set_integers(t, CUDNN_ATTR_CONVOLUTION_DILATIONS, {1, 1}), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(set_integers(t, CUDNN_ATTR_TENSOR_UNIQUE_ID, {1, 2}), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(set_integers(t, CUDNN_ATTR_TENSOR_DIMENSIONS, {}), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(cudnnBackendSetAttribute(t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, nullptr),
            CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(set_integers(t, CUDNN_ATTR_TENSOR_UNIQUE_ID, {7}), kOk);  // again, before finalizing
  EXPECT_EQ(set_integers(nullptr, CUDNN_ATTR_TENSOR_UNIQUE_ID, {7}), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  EXPECT_EQ(cudnnBackendFinalize(nullptr), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  EXPECT_EQ(cudnnBackendDestroyDescriptor(nullptr), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
}

TEST_F(CudnnBackend, ConvolutionRefusesImpossibleNumbers) {
  EXPECT_EQ(finalized_convolution({}), kOk);
  EXPECT_EQ(finalized_convolution({.padding = -1}), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(finalized_convolution({.stride = 0}), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(finalized_convolution({.dilation = 0}), CUDNN_STATUS_BAD_PARAM);
  for (const int name :
       {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_ATTR_CONVOLUTION_DILATIONS})
    EXPECT_EQ(finalized_convolution({.left_out = name}), CUDNN_STATUS_BAD_PARAM) << name;
}

TEST_F(CudnnBackend, OperationNeedsItsTensors) {
  const OperationFields whole = usual();
  EXPECT_EQ(finalized_operation(whole), kOk);
  for (const auto member :
       {&OperationFields::x, &OperationFields::filter, &OperationFields::y, &OperationFields::convolution}) {
    OperationFields fields = whole;
    fields.*member = nullptr;
    EXPECT_EQ(finalized_operation(fields), CUDNN_STATUS_BAD_PARAM);
  }
  OperationFields unfinished = whole;
  unfinished.x = make_tensor(objects_, {});
  EXPECT_NE(finalized_operation(unfinished), kOk);
}

TEST_F(CudnnBackend, OperationRefusesShapesThatDoNotFit) {
  const OperationFields whole = usual();
  const auto with_y = [&](const std::vector<int64_t>& d) {
    OperationFields fields = whole;
    fields.y = tensor({.dims = d, .strides = {d[1] * d[2] * d[3], 1, d[3] * d[1], d[1]}, .id = 3});
    return finalized_operation(fields);
  };
  EXPECT_EQ(with_y({2, 16, 4, 4}), kOk);
  EXPECT_EQ(with_y({2, 16, 5, 4}), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(with_y({2, 16, 4, 3}), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(with_y({3, 16, 4, 4}), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(with_y({2, 17, 4, 4}), CUDNN_STATUS_BAD_PARAM);
  OperationFields fields = whole;
  fields.filter = tensor({.dims = {16, 5, 3, 3}, .strides = {45, 1, 15, 5}, .id = 2});
  EXPECT_EQ(finalized_operation(fields), CUDNN_STATUS_BAD_PARAM);
}

TEST_F(CudnnBackend, GraphTakesFinalizedOperations) {
  const Handle graph = objects_.make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  EXPECT_EQ(cudnnBackendFinalize(graph), CUDNN_STATUS_BAD_PARAM);
  const Handle operation = make_operation(objects_, kForwardPass, usual());
  const Handle other = objects_.make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  EXPECT_EQ(set_object(other, CUDNN_ATTR_OPERATIONGRAPH_OPS, operation), CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  ASSERT_EQ(cudnnBackendFinalize(operation), kOk);
  EXPECT_EQ(set_object(other, CUDNN_ATTR_OPERATIONGRAPH_OPS, operation), kOk);
  EXPECT_EQ(cudnnBackendFinalize(other), kOk);
  EXPECT_NE(cudnnBackendFinalize(objects_.make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)), kOk);
  EXPECT_NE(cudnnBackendFinalize(objects_.make(CUDNN_BACKEND_ENGINE_DESCRIPTOR)), kOk);
  EXPECT_NE(cudnnBackendFinalize(objects_.make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)), kOk);
}

TEST_F(CudnnBackend, VariantPackPairsIdsAndPointers) {
  void* const somewhere = this;
  const auto finalized = [&](const std::vector<int64_t>& ids, size_t pointers) {
    const Handle pack = objects_.make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    EXPECT_EQ(set_integers(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids), kOk);
    if (pointers > 0) {
      EXPECT_EQ(set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, std::vector(pointers, somewhere)),
                kOk);
    }
    return cudnnBackendFinalize(pack);
  };
  EXPECT_EQ(finalized({1, 2, 3}, 3), kOk);
  EXPECT_EQ(finalized({1, 2, 3}, 2), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(finalized({1, 2, 3}, 0), CUDNN_STATUS_BAD_PARAM);
}

TEST_F(CudnnBackend, HandleCallsRefuseNull) {
  EXPECT_EQ(cudnnCreate(nullptr), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(cudnnDestroy(nullptr), kOk);
  EXPECT_EQ(cudnnSetStream(nullptr, nullptr), CUDNN_STATUS_BAD_PARAM);
}

}  // namespace
}  // namespace simclr::test
