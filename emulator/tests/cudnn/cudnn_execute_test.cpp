// The fake cuDNN computes convolutions: against plain loops written from the formula in NVIDIA's documentation, in both
// memory orders and both storage types; and it refuses what would spoil memory on a GPU.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "emulator/tests/cudnn/raw_graph.h"

namespace simclr::test {
namespace {

constexpr auto kOk = CUDNN_STATUS_SUCCESS;
using Dims = std::vector<int64_t>;  // [n, c, h, w] or [k, c, r, s]

int64_t product(const Dims& d) {
  return d[0] * d[1] * d[2] * d[3];
}
Dims strides_of(const Dims& d, bool channels_last) {
  if (channels_last) return {d[1] * d[2] * d[3], 1, d[3] * d[1], d[1]};
  return {d[1] * d[2] * d[3], d[2] * d[3], d[3], 1};
}

struct Problem {
  Dims x, filter, y;
  int64_t padding = 1, stride = 1, dilation = 1;
  bool channels_last = true;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  float alpha = 1.0F, beta = 0.0F;
};

Problem make_problem(int64_t n, int64_t c, int64_t k, int64_t height, int64_t width, int64_t kernel, int64_t padding,
                     int64_t stride, int64_t dilation) {
  const auto out = [&](int64_t size) { return (size + 2 * padding - ((kernel - 1) * dilation + 1)) / stride + 1; };
  return {{n, c, height, width}, {k, c, kernel, kernel}, {n, k, out(height), out(width)}, padding, stride, dilation};
}

// f(index of x, of the filter, of y) in plain nchw order, for every product of the convolution (cross-correlation).
void for_each_product(const Problem& p, const std::function<void(size_t, size_t, size_t)>& f) {
  const auto at = [](const Dims& d, int64_t a, int64_t b, int64_t c, int64_t e) {
    return static_cast<size_t>(((a * d[1] + b) * d[2] + c) * d[3] + e);
  };
  for (int64_t n = 0; n < p.y[0]; ++n)
    for (int64_t k = 0; k < p.y[1]; ++k)
      for (int64_t oh = 0; oh < p.y[2]; ++oh)
        for (int64_t ow = 0; ow < p.y[3]; ++ow)
          for (int64_t c = 0; c < p.x[1]; ++c)
            for (int64_t r = 0; r < p.filter[2]; ++r)
              for (int64_t s = 0; s < p.filter[3]; ++s) {
                const int64_t h = oh * p.stride - p.padding + r * p.dilation,
                              w = ow * p.stride - p.padding + s * p.dilation;
                if (h >= 0 && h < p.x[2] && w >= 0 && w < p.x[3])
                  f(at(p.x, n, c, h, w), at(p.filter, k, c, r, s), at(p.y, n, k, oh, ow));
              }
}

// A tensor on the device, filled from plain nchw values.
class DeviceTensor {
 public:
  DeviceTensor(const Problem& p, const Dims& dims, cudaStream_t stream) : p_(p), dims_(dims), stream_(stream) {
    EXPECT_EQ(cudaMalloc(&data_, bytes()), cudaSuccess);
  }
  DeviceTensor(const DeviceTensor&) = delete;
  DeviceTensor& operator=(const DeviceTensor&) = delete;
  ~DeviceTensor() { cudaFree(data_); }

  void* data() const { return data_; }
  size_t bytes() const { return static_cast<size_t>(product(dims_)) * element(); }
  void fill(const std::vector<float>& plain) {
    std::vector<char> image(bytes());
    for_each([&](size_t from, size_t to) {
      if (p_.type == CUDNN_DATA_FLOAT) {
        reinterpret_cast<float*>(image.data())[to] = plain[from];
      } else {
        reinterpret_cast<__nv_bfloat16*>(image.data())[to] = __float2bfloat16(plain[from]);
      }
    });
    EXPECT_EQ(cudaMemcpyAsync(data_, image.data(), bytes(), cudaMemcpyHostToDevice, stream_), cudaSuccess);
  }
  std::vector<float> plain() const {
    std::vector<char> image(bytes());
    EXPECT_EQ(cudaMemcpyAsync(image.data(), data_, bytes(), cudaMemcpyDeviceToHost, stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    std::vector<float> result(product(dims_));
    for_each([&](size_t to, size_t from) {
      result[to] = p_.type == CUDNN_DATA_FLOAT ? reinterpret_cast<float*>(image.data())[from]
                                               : __bfloat162float(reinterpret_cast<__nv_bfloat16*>(image.data())[from]);
    });
    return result;
  }

 private:
  size_t element() const { return p_.type == CUDNN_DATA_FLOAT ? 4 : 2; }
  void for_each(const std::function<void(size_t, size_t)>& f) const {
    const Dims s = strides_of(dims_, p_.channels_last);
    size_t plain = 0;
    for (int64_t a = 0; a < dims_[0]; ++a)
      for (int64_t b = 0; b < dims_[1]; ++b)
        for (int64_t c = 0; c < dims_[2]; ++c)
          for (int64_t d = 0; d < dims_[3]; ++d)
            f(plain++, static_cast<size_t>(a * s[0] + b * s[1] + c * s[2] + d * s[3]));
  }
  Problem p_;
  Dims dims_;
  cudaStream_t stream_;
  void* data_ = nullptr;
};

class CudnnExecute : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudnnCreate(&handle_), kOk);
    ASSERT_EQ(cudnnSetStream(handle_, stream_), kOk);
  }
  void TearDown() override {
    cudnnDestroy(handle_);
    cudaStreamDestroy(stream_);
  }

  struct Config {
    int64_t engine = -1, workspace = -1;
    std::vector<cudnnBackendNumericalNote_t> notes;
    Handle plan = nullptr;  // null: does not finalize
  };
  // All that the heuristics offer, in their order.
  std::vector<Config> offers(const Problem& p, const PassAttributes& pass, cudnnBackendHeurMode_t mode) {
    const auto tensor = [&](const Dims& d, int64_t id) {
      const Handle t =
          make_tensor(objects_, {.dims = d, .strides = strides_of(d, p.channels_last), .id = id, .type = p.type});
      EXPECT_EQ(cudnnBackendFinalize(t), kOk);
      return t;
    };
    const Handle convolution =
        make_convolution(objects_, {.padding = p.padding, .stride = p.stride, .dilation = p.dilation});
    EXPECT_EQ(cudnnBackendFinalize(convolution), kOk);
    const Handle operation = make_operation(
        objects_, pass, {tensor(p.x, 11), tensor(p.filter, 22), tensor(p.y, 33), convolution, p.alpha, p.beta});
    EXPECT_EQ(cudnnBackendFinalize(operation), kOk);
    const Handle graph = objects_.make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set_object(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
    set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, std::vector{handle_});
    EXPECT_EQ(cudnnBackendFinalize(graph), kOk);
    const Handle heuristics = objects_.make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    set_object(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    set(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, std::vector{mode});
    EXPECT_EQ(cudnnBackendFinalize(heuristics), kOk);
    int64_t count = 0;
    EXPECT_EQ(cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                                       &count, nullptr),
              kOk);
    std::vector<Handle> configs;
    for (int64_t i = 0; i < count; ++i) configs.push_back(objects_.make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    EXPECT_EQ(cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count,
                                       &count, configs.data()),
              kOk);
    configs.resize(count);  // what was asked for first is an upper bound
    std::vector<Config> result;
    for (const Handle config : configs) result.push_back(read(config));
    return result;
  }
  Config read(Handle config) {
    Config result;
    Handle engine = objects_.make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    int64_t count = 0;
    EXPECT_EQ(cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                                       &engine),
              kOk);
    cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count, &result.engine);
    result.notes.resize(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
    cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                             CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, result.notes.data());
    result.notes.resize(count);
    const Handle plan = objects_.make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, std::vector{handle_});
    set_object(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    if (cudnnBackendFinalize(plan) != kOk) return result;
    result.plan = plan;
    cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count,
                             &result.workspace);
    return result;
  }
  Handle pack(const std::vector<int64_t>& ids, const std::vector<void*>& pointers, void* workspace) {
    const Handle v = objects_.make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    set_integers(v, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
    set(v, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers);
    set(v, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, std::vector{workspace});
    EXPECT_EQ(cudnnBackendFinalize(v), kOk);
    return v;
  }

  Objects objects_;
  cudaStream_t stream_ = nullptr;
  cudnnHandle_t handle_ = nullptr;
};

std::vector<float> random_plain(const Dims& dims, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
  std::vector<float> values(product(dims));
  for (float& v : values) v = __bfloat162float(__float2bfloat16(uniform(engine)));  // exact in both storage types
  return values;
}

// All three passes by every engine that makes a plan. Operands are exact in bfloat16 (and so in TF32), the products
// too; what remains is the sum of up to 300 terms of at most 1: 300 * 300 * 2^-24 < 1e-2 worst, 1e-5 usual; rounding to
// bfloat16 adds 2^-9 of the result.
TEST_F(CudnnExecute, ComputesTheFormula) {
  std::vector<Problem> problems{make_problem(2, 8, 16, 5, 6, 3, 1, 1, 1), make_problem(3, 16, 8, 7, 5, 3, 1, 2, 1),
                                make_problem(1, 3, 5, 9, 9, 7, 3, 2, 1),  make_problem(2, 4, 6, 4, 3, 1, 0, 2, 1),
                                make_problem(2, 2, 3, 8, 9, 3, 2, 1, 2),  make_problem(1, 1, 1, 1, 1, 1, 0, 1, 1)};
  problems[1].alpha = -0.5F;
  problems[1].beta = 2.0F;
  const PassAttributes* const passes[] = {&kForwardPass, &kDataPass, &kFilterPass};
  int executed = 0;
  for (Problem p : problems)
    for (const bool channels_last : {true, false})
      for (const auto type : {CUDNN_DATA_FLOAT, CUDNN_DATA_BFLOAT16}) {
        p.channels_last = channels_last;
        p.type = type;
        const auto x = random_plain(p.x, 1), filter = random_plain(p.filter, 2), y = random_plain(p.y, 3);
        for (int pass = 0; pass < 3; ++pass) {
          const auto& old = pass == 0 ? y : pass == 1 ? x : filter;
          std::vector<double> sum(old.size());
          for_each_product(p, [&](size_t i, size_t j, size_t k) {
            if (pass == 0) sum[k] += static_cast<double>(x[i]) * filter[j];
            if (pass == 1) sum[i] += static_cast<double>(y[k]) * filter[j];
            if (pass == 2) sum[j] += static_cast<double>(x[i]) * y[k];
          });
          for (const Config& offer : offers(p, *passes[pass], CUDNN_HEUR_MODE_A)) {
            if (!offer.plan || offer.workspace > (1 << 30)) continue;
            DeviceTensor dx(p, p.x, stream_), df(p, p.filter, stream_), dy(p, p.y, stream_);
            if (pass != 1 || p.beta != 0.0F) dx.fill(x);  // beta 0 must not read the output, which is NaN
            if (pass != 2 || p.beta != 0.0F) df.fill(filter);
            if (pass != 0 || p.beta != 0.0F) dy.fill(y);
            void* workspace = nullptr;
            if (offer.workspace > 0) {
              ASSERT_EQ(cudaMalloc(&workspace, static_cast<size_t>(offer.workspace)), cudaSuccess);
            }
            ASSERT_EQ(cudnnBackendExecute(handle_, offer.plan,
                                          pack({33, 11, 22}, {dy.data(), dx.data(), df.data()}, workspace)),
                      kOk);
            const auto got = (pass == 0 ? dy : pass == 1 ? dx : df).plain();
            for (size_t i = 0; i < got.size(); ++i) {
              const double want = p.alpha * sum[i] + (p.beta == 0.0F ? 0.0 : static_cast<double>(p.beta) * old[i]);
              const double bound = type == CUDNN_DATA_FLOAT ? 1e-5 : 1e-5 + std::ldexp(std::fabs(want), -8);
              ASSERT_NEAR(got[i], want, bound) << "pass " << pass << ", engine " << offer.engine << ", element " << i;
            }
            cudaFree(workspace);
            ++executed;
          }
        }
      }
  // 6 problems, 2 orders, 3 passes; float: 4 engines make plans of finite size, bfloat16: 3.
  EXPECT_EQ(executed, 6 * 2 * 3 * (4 + 3));
}

// What a caller has to be ready for stands first.
TEST_F(CudnnExecute, HeuristicsRankFirstWhatACarefulCallerPassesOver) {
  const auto offered = offers(make_problem(2, 8, 16, 5, 6, 3, 1, 1, 1), kForwardPass, CUDNN_HEUR_MODE_A);
  ASSERT_GE(offered.size(), 5U);
  EXPECT_THAT(offered[0].notes, testing::Contains(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC));
  EXPECT_GT(offered[1].workspace, int64_t{1} << 35);
  EXPECT_EQ(offered[2].plan, nullptr);
  EXPECT_THAT(offered[3].notes, testing::Contains(CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
  EXPECT_THAT(offered[4].notes, testing::IsEmpty());
  EXPECT_EQ(offers(make_problem(2, 8, 16, 5, 6, 3, 1, 1, 1), kForwardPass, CUDNN_HEUR_MODE_FALLBACK).size(), 1U);
}

// TF32 keeps 10 bits of the mantissa: 1 + 2^-12 becomes 1.
TEST_F(CudnnExecute, TensorCoresRoundFloatOperands) {
  const Problem p = make_problem(1, 1, 1, 1, 1, 1, 0, 1, 1);
  for (const Config& offer : offers(p, kForwardPass, CUDNN_HEUR_MODE_A)) {
    if (!offer.plan || offer.workspace > (1 << 30)) continue;
    DeviceTensor x(p, p.x, stream_), filter(p, p.filter, stream_), y(p, p.y, stream_),
        workspace(p, {64, 8, 2, 2}, stream_);
    x.fill({1.0F + 0x1p-12F});
    filter.fill({1.0F});
    ASSERT_EQ(cudnnBackendExecute(handle_, offer.plan,
                                  pack({11, 22, 33}, {x.data(), filter.data(), y.data()}, workspace.data())),
              kOk);
    const bool rounds = !offer.notes.empty() && offer.notes[0] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    EXPECT_EQ(y.plain()[0], rounds ? 1.0F : 1.0F + 0x1p-12F) << offer.engine;
  }
}

class CudnnMisuse : public CudnnExecute {
 protected:
  void SetUp() override {
    CudnnExecute::SetUp();
    for (const Config& offer : offers(p_, kForwardPass, CUDNN_HEUR_MODE_A))
      if (offer.plan && offer.notes.empty() && offer.workspace < (1 << 30)) offer_ = offer;
    ASSERT_NE(offer_.plan, nullptr);
    ASSERT_GT(offer_.workspace, 0);
    ASSERT_EQ(cudaMalloc(&workspace_, static_cast<size_t>(offer_.workspace)), cudaSuccess);
    x_.fill(random_plain(p_.x, 1));
    filter_.fill(random_plain(p_.filter, 2));
  }
  void TearDown() override {
    cudaFree(workspace_);
    CudnnExecute::TearDown();
  }
  cudnnStatus_t execute(void* x, void* filter, void* y, void* workspace) {
    return cudnnBackendExecute(handle_, offer_.plan, pack({11, 22, 33}, {x, filter, y}, workspace));
  }
  static void* moved(void* p, std::ptrdiff_t bytes) { return static_cast<char*>(p) + bytes; }

  Problem p_ = make_problem(2, 8, 16, 5, 6, 3, 1, 1, 1);
  Config offer_;
  void* workspace_ = nullptr;
  // Created on the null stream's device, filled on stream_ after SetUp.
  struct LateTensor {
    Dims dims;
    void* data = nullptr;
    explicit LateTensor(const Dims& d) : dims(d) { cudaMalloc(&data, static_cast<size_t>(product(d)) * 4); }
    ~LateTensor() { cudaFree(data); }
    LateTensor(const LateTensor&) = delete;
    LateTensor& operator=(const LateTensor&) = delete;
    void fill(const std::vector<float>& values) {
      cudaMemcpy(data, values.data(), values.size() * 4, cudaMemcpyHostToDevice);
    }
  };
  LateTensor x_{p_.x}, filter_{p_.filter}, y_{p_.y};
};

TEST_F(CudnnMisuse, RightCallPasses) {
  EXPECT_EQ(execute(x_.data, filter_.data, y_.data, workspace_), kOk);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
}

TEST_F(CudnnMisuse, PointersAreChecked) {
  std::vector<float> host(4096);
  EXPECT_EQ(execute(host.data(), filter_.data, y_.data, workspace_), CUDNN_STATUS_BAD_PARAM) << "host memory";
  EXPECT_EQ(execute(nullptr, filter_.data, y_.data, workspace_), CUDNN_STATUS_BAD_PARAM) << "null";
  EXPECT_EQ(execute(moved(x_.data, 16), filter_.data, y_.data, workspace_), CUDNN_STATUS_BAD_PARAM) << "runs out";
  EXPECT_EQ(execute(moved(x_.data, 4), filter_.data, y_.data, workspace_), CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER);
  EXPECT_EQ(execute(x_.data, filter_.data, x_.data, workspace_), CUDNN_STATUS_BAD_PARAM) << "y too small";
  EXPECT_EQ(execute(y_.data, filter_.data, y_.data, workspace_), CUDNN_STATUS_BAD_PARAM) << "y is x";
}

TEST_F(CudnnMisuse, WorkspaceIsChecked) {
  EXPECT_EQ(execute(x_.data, filter_.data, y_.data, nullptr), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(execute(x_.data, filter_.data, y_.data, moved(workspace_, 16)), CUDNN_STATUS_BAD_PARAM) << "16 bytes short";
  EXPECT_EQ(execute(x_.data, filter_.data, y_.data, moved(workspace_, 8)), CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER);
  EXPECT_EQ(execute(x_.data, filter_.data, y_.data, y_.data), CUDNN_STATUS_BAD_PARAM) << "y as workspace";
}

TEST_F(CudnnMisuse, WorkspaceIsSpoilt) {
  std::vector<unsigned char> bytes(offer_.workspace, 1);
  ASSERT_EQ(cudaMemcpyAsync(workspace_, bytes.data(), bytes.size(), cudaMemcpyHostToDevice, stream_), cudaSuccess);
  ASSERT_EQ(execute(x_.data, filter_.data, y_.data, workspace_), kOk);
  ASSERT_EQ(cudaMemcpyAsync(bytes.data(), workspace_, bytes.size(), cudaMemcpyDeviceToHost, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_THAT(bytes, testing::Each(0xFF));
}

TEST_F(CudnnMisuse, IdsHandlesAndStates) {
  const std::vector<void*> pointers{x_.data, filter_.data, y_.data};
  EXPECT_EQ(cudnnBackendExecute(handle_, offer_.plan, pack({11, 22, 44}, pointers, workspace_)),
            CUDNN_STATUS_BAD_PARAM);
  const Handle good = pack({11, 22, 33}, pointers, workspace_);
  EXPECT_EQ(cudnnBackendExecute(nullptr, offer_.plan, good), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(cudnnBackendExecute(handle_, good, offer_.plan), CUDNN_STATUS_BAD_PARAM) << "swapped";
  const Handle unfinished = objects_.make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  EXPECT_EQ(cudnnBackendExecute(handle_, offer_.plan, unfinished), CUDNN_STATUS_BAD_PARAM);
  cudnnHandle_t other = nullptr;
  ASSERT_EQ(cudnnCreate(&other), kOk);
  EXPECT_EQ(cudnnBackendExecute(other, offer_.plan, good), CUDNN_STATUS_BAD_PARAM) << "the plan of another handle";
  EXPECT_EQ(cudnnDestroy(other), kOk);
  EXPECT_EQ(cudnnDestroy(other), CUDNN_STATUS_BAD_PARAM) << "twice";
  EXPECT_EQ(cudnnSetStream(handle_, nullptr), CUDNN_STATUS_BAD_PARAM) << "the default stream";
}

TEST(CudnnStrict, WhatTheLibraryWouldFillInIsMissing) {
  Objects objects;
  for (const int name : {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_ATTR_TENSOR_UNIQUE_ID})
    EXPECT_EQ(cudnnBackendFinalize(make_tensor(objects, {.left_out = name})), CUDNN_STATUS_BAD_PARAM) << name;
  EXPECT_EQ(cudnnBackendFinalize(make_tensor(objects, {.strides = {1, 1, 1, 1}})), CUDNN_STATUS_BAD_PARAM) << "overlap";
  Handle destroyed = nullptr;
  ASSERT_EQ(cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, &destroyed), kOk);
  ASSERT_EQ(cudnnBackendDestroyDescriptor(destroyed), kOk);
  EXPECT_EQ(cudnnBackendFinalize(destroyed), CUDNN_STATUS_BAD_PARAM);
}

// As the real library: bfloat16 tensors have no engine that writes a float32 filter gradient.
TEST_F(CudnnExecute, HasNoEngineForMixedStorage) {
  const Problem p = make_problem(2, 8, 16, 5, 6, 3, 1, 1, 1);
  const auto tensor = [&](const Dims& d, int64_t id, cudnnDataType_t type) {
    const Handle t = make_tensor(objects_, {.dims = d, .strides = strides_of(d, true), .id = id, .type = type});
    cudnnBackendFinalize(t);
    return t;
  };
  const Handle convolution = make_convolution(objects_, {});
  cudnnBackendFinalize(convolution);
  const Handle operation = make_operation(objects_, kFilterPass,
                                          {tensor(p.x, 1, CUDNN_DATA_BFLOAT16), tensor(p.filter, 2, CUDNN_DATA_FLOAT),
                                           tensor(p.y, 3, CUDNN_DATA_BFLOAT16), convolution});
  ASSERT_EQ(cudnnBackendFinalize(operation), kOk);
  const Handle graph = objects_.make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  set_object(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  ASSERT_EQ(cudnnBackendFinalize(graph), kOk);
  const Handle heuristics = objects_.make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  set_object(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  set(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, std::vector{CUDNN_HEUR_MODE_A});
  ASSERT_EQ(cudnnBackendFinalize(heuristics), kOk);
  int64_t count = -1;
  Handle config = objects_.make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  ASSERT_EQ(cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                     &count, &config),
            kOk);
  EXPECT_EQ(count, 0);
}

}  // namespace
}  // namespace simclr::test
