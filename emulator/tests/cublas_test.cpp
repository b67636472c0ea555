// The fake cuBLAS against sums in double over the formula in NVIDIA's manual: C = alpha op(A) op(B) + beta C, matrices
// column-major, element (i, j) at i + j * ld.
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "emulator/tests/device_memory.h"

namespace simclr::test {

namespace {

class Handle {
 public:
  explicit Handle(cudaStream_t stream) {
    EXPECT_EQ(cublasCreate(&handle_), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasSetStream(handle_, stream), CUBLAS_STATUS_SUCCESS);
  }
  ~Handle() { cublasDestroy(handle_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  operator cublasHandle_t() const { return handle_; }  // NOLINT(google-explicit-constructor): it is the handle

 private:
  cublasHandle_t handle_ = nullptr;
};

template <typename T>
T number_as(float x) {
  return static_cast<T>(x);
}

template <typename T>
std::vector<T> numbers(size_t count, uint32_t state) {
  std::vector<T> values(count);
  for (T& x : values) {
    state = state * 1664525U + 1013904223U;
    x = number_as<T>(static_cast<float>(state >> 8) / static_cast<float>(1 << 23) - 1.0F);
  }
  return values;
}

struct Sizes {
  int m, n, k, lda, ldb, ldc;
  cublasOperation_t op_a, op_b;
};

template <typename T>
double element(const std::vector<T>& x, size_t begin, int ld, cublasOperation_t op, int i, int j) {
  const int row = op == CUBLAS_OP_N ? i : j;
  const int column = op == CUBLAS_OP_N ? j : i;
  return static_cast<double>(
      static_cast<float>(x[begin + static_cast<size_t>(row) + static_cast<size_t>(column) * ld]));
}

// Rounding of the products' sums in float: k terms below 1, and of one bf16 at the end.
template <typename In, typename Out>
void expect_product(const Sizes& s, const std::vector<In>& a, size_t a_begin, const std::vector<In>& b, size_t b_begin,
                    float alpha, float beta, const std::vector<Out>& before, const std::vector<Out>& c,
                    size_t c_begin) {
  for (int j = 0; j < s.n; ++j) {
    for (int i = 0; i < s.ldc; ++i) {
      const size_t at = c_begin + static_cast<size_t>(i) + static_cast<size_t>(j) * s.ldc;
      if (i >= s.m) {  // the gap between columns is not touched
        if (at < c.size()) {
          EXPECT_EQ(static_cast<float>(c[at]), static_cast<float>(before[at]));
        }
        continue;
      }
      double expected = 0.0;
      for (int l = 0; l < s.k; ++l) {
        expected += element(a, a_begin, s.lda, s.op_a, i, l) * element(b, b_begin, s.ldb, s.op_b, l, j);
      }
      expected *= static_cast<double>(alpha);
      if (beta != 0.0F) expected += static_cast<double>(beta) * static_cast<double>(static_cast<float>(before[at]));
      const double tolerance =
          (sizeof(Out) == 2 ? 0.0040 * std::abs(expected) : 0.0) + 1e-6 * std::sqrt(static_cast<double>(s.k) + 1.0);
      ASSERT_NEAR(static_cast<double>(static_cast<float>(c[at])), expected, tolerance) << i << ", " << j;
    }
  }
}

template <typename T>
constexpr cudaDataType kType = sizeof(T) == 4 ? CUDA_R_32F : CUDA_R_16BF;

template <typename In, typename Out>
void check_gemm_ex(const Sizes& s, float alpha, float beta, cublasComputeType_t compute) {
  const Stream stream;
  const Handle handle(stream);
  const auto a = numbers<In>(static_cast<size_t>(s.lda) * (s.op_a == CUBLAS_OP_N ? s.k : s.m), 1);
  const auto b = numbers<In>(static_cast<size_t>(s.ldb) * (s.op_b == CUBLAS_OP_N ? s.n : s.k), 2);
  const auto c = numbers<Out>(static_cast<size_t>(s.ldc) * s.n, 3);
  const DeviceArray<In> device_a(a);
  const DeviceArray<In> device_b(b);
  const DeviceArray<Out> device_c(c);
  ASSERT_EQ(
      cublasGemmEx(handle, s.op_a, s.op_b, s.m, s.n, s.k, &alpha, device_a.data(), kType<In>, s.lda, device_b.data(),
                   kType<In>, s.ldb, &beta, device_c.data(), kType<Out>, s.ldc, compute, CUBLAS_GEMM_DEFAULT),
      CUBLAS_STATUS_SUCCESS);
  expect_product(s, a, 0, b, 0, alpha, beta, c, device_c.read_after(stream), 0);
}

constexpr cublasOperation_t kN = CUBLAS_OP_N;
constexpr cublasOperation_t kT = CUBLAS_OP_T;

Sizes sizes(int m, int n, int k, int gap, cublasOperation_t op_a, cublasOperation_t op_b) {
  return {m, n, k, (op_a == kN ? m : k) + gap, (op_b == kN ? k : n) + gap, m + gap, op_a, op_b};
}

TEST(Product, ByHand) {
  const Stream stream;
  const Handle handle(stream);
  // A = [1 2; 3 4; 5 6] (3 x 2), B = [1 0; 2 1] (2 x 2): C = [5 2; 11 4; 17 6], columns one after the other.
  const DeviceArray<float> a(std::vector<float>{1, 3, 5, 2, 4, 6});
  const DeviceArray<float> b(std::vector<float>{1, 2, 0, 1});
  const DeviceArray<float> c(6);  // NaN, which beta = 0 must not read
  const float one = 1.0F;
  const float zero = 0.0F;
  ASSERT_EQ(cublasSgemm(handle, kN, kN, 3, 2, 2, &one, a.data(), 3, b.data(), 2, &zero, c.data(), 3),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(c.read_after(stream), (std::vector<float>{5, 11, 17, 2, 4, 6}));
}

TEST(Product, AllOperationsSizesAndGaps) {
  for (const auto op_a : {kN, kT}) {
    for (const auto op_b : {kN, kT, CUBLAS_OP_C}) {
      for (const int gap : {0, 3}) {
        check_gemm_ex<float, float>(sizes(37, 21, 53, gap, op_a, op_b), 0.5F, 0.0F, CUBLAS_COMPUTE_32F);
        check_gemm_ex<float, float>(sizes(1, 33, 31, gap, op_a, op_b), 1.0F, -2.0F, CUBLAS_COMPUTE_32F_PEDANTIC);
        check_gemm_ex<float, float>(sizes(5, 1, 1, gap, op_a, op_b), 1.0F, 1.0F, CUBLAS_COMPUTE_32F_FAST_TF32);
        check_gemm_ex<__nv_bfloat16, float>(sizes(17, 9, 40, gap, op_a, op_b), 1.5F, 0.5F, CUBLAS_COMPUTE_32F);
        check_gemm_ex<__nv_bfloat16, __nv_bfloat16>(sizes(17, 9, 40, gap, op_a, op_b), 1.0F, 0.5F, CUBLAS_COMPUTE_32F);
      }
    }
  }
}

TEST(Product, BatchesWithStrides) {
  const Stream stream;
  const Handle handle(stream);
  const Sizes s = sizes(7, 5, 11, 1, kT, kN);
  constexpr int kBatches = 4;
  const long long stride_b = static_cast<long long>(s.ldb) * s.n + 2;
  const long long stride_c = static_cast<long long>(s.ldc) * s.n + 5;
  const float alpha = 1.0F;
  const float beta = 1.0F;
  const auto a = numbers<float>(static_cast<size_t>(s.lda) * s.m, 1);  // one A for all: stride 0
  const auto b = numbers<float>(static_cast<size_t>(stride_b) * kBatches, 2);
  const auto c = numbers<float>(static_cast<size_t>(stride_c) * kBatches, 3);
  const DeviceArray<float> device_a(a);
  const DeviceArray<float> device_b(b);
  const DeviceArray<float> device_c(c);
  const DeviceArray<float> device_d(c);
  ASSERT_EQ(cublasGemmStridedBatchedEx(handle, s.op_a, s.op_b, s.m, s.n, s.k, &alpha, device_a.data(), CUDA_R_32F,
                                       s.lda, 0, device_b.data(), CUDA_R_32F, s.ldb, stride_b, &beta, device_c.data(),
                                       CUDA_R_32F, s.ldc, stride_c, kBatches, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
            CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(
      cublasSgemmStridedBatched(handle, s.op_a, s.op_b, s.m, s.n, s.k, &alpha, device_a.data(), s.lda, 0,
                                device_b.data(), s.ldb, stride_b, &beta, device_d.data(), s.ldc, stride_c, kBatches),
      CUBLAS_STATUS_SUCCESS);
  const auto result = device_c.read_after(stream);
  EXPECT_EQ(device_d.read_after(stream), result);
  for (size_t batch = 0; batch < kBatches; ++batch) {
    expect_product(s, a, 0, b, batch * static_cast<size_t>(stride_b), alpha, beta, c, result,
                   batch * static_cast<size_t>(stride_c));
  }
}

TEST(Product, ScalarsAreReadAtTheCallOperandsLater) {
  const Stream stream;
  const Handle handle(stream);
  const DeviceArray<float> a(std::vector<float>{0.0F});
  const DeviceArray<float> b(std::vector<float>{3.0F});
  const DeviceArray<float> c(1);
  const PinnedArray<float> two(1, 2.0F);
  ASSERT_EQ(cudaMemcpyAsync(a.data(), two.data(), sizeof(float), cudaMemcpyHostToDevice, stream), cudaSuccess);
  {
    float alpha = 10.0F;
    float beta = 0.0F;
    ASSERT_EQ(cublasSgemm(handle, kN, kN, 1, 1, 1, &alpha, a.data(), 1, b.data(), 1, &beta, c.data(), 1),
              CUBLAS_STATUS_SUCCESS);
    alpha = beta = NAN;
  }
  EXPECT_EQ(c.read_after(stream)[0], 60.0F);
}

TEST(Product, NothingToAddIsBetaTimesC) {
  const Stream stream;
  const Handle handle(stream);
  const DeviceArray<float> c(std::vector<float>{3.0F, 5.0F});
  const float alpha = 1.0F;
  float beta = 2.0F;
  ASSERT_EQ(cublasSgemm(handle, kN, kN, 2, 1, 0, &alpha, nullptr, 2, nullptr, 1, &beta, c.data(), 2),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(c.read_after(stream), (std::vector<float>{6.0F, 10.0F}));
  beta = 0.0F;
  ASSERT_EQ(cublasSgemm(handle, kN, kN, 2, 1, 0, &alpha, nullptr, 2, nullptr, 1, &beta, c.data(), 2),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(c.read_after(stream), (std::vector<float>{0.0F, 0.0F}));
}

TEST(Refusal, OfSizesTypesAndExtents) {
  const Stream stream;
  const Handle handle(stream);
  const DeviceArray<float> a(12);
  const DeviceArray<float> b(12);
  const DeviceArray<float> c(12);
  std::vector<float> host(12);
  const float one = 1.0F;
  const auto gemm = [&](int m, int n, int k, const float* x, int lda, const float* y, int ldb, float* z, int ldc) {
    return cublasSgemm(handle, kN, kN, m, n, k, &one, x, lda, y, ldb, &one, z, ldc);
  };
  EXPECT_EQ(gemm(3, 3, 4, a.data(), 3, b.data(), 4, c.data(), 3), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(gemm(0, 3, 4, a.data(), 3, b.data(), 4, c.data(), 3), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(gemm(-1, 3, 4, a.data(), 3, b.data(), 4, c.data(), 3), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(gemm(3, 3, 4, a.data(), 2, b.data(), 4, c.data(), 3), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(gemm(3, 3, 4, a.data(), 3, b.data(), 3, c.data(), 3), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(gemm(3, 3, 4, a.data(), 3, b.data(), 4, c.data(), 2), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(gemm(3, 3, 4, a.data(), 4, b.data(), 4, c.data(), 3), CUBLAS_STATUS_INVALID_VALUE);  // A: 15 elements
  EXPECT_EQ(gemm(3, 3, 4, a.data() + 1, 3, b.data(), 4, c.data(), 3), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(gemm(3, 3, 4, host.data(), 3, b.data(), 4, c.data(), 3), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(gemm(3, 3, 4, a.data(), 3, b.data(), 4, b.data() + 1, 3), CUBLAS_STATUS_INVALID_VALUE);  // C over B
  EXPECT_EQ(cublasSgemm(handle, kN, kN, 3, 3, 4, nullptr, a.data(), 3, b.data(), 4, &one, c.data(), 3),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(
      cublasSgemmStridedBatched(handle, kN, kN, 2, 2, 1, &one, a.data(), 2, 0, b.data(), 1, 0, &one, c.data(), 2, 3, 2),
      CUBLAS_STATUS_INVALID_VALUE);  // batches of C overlap
  const auto types = [&](cudaDataType x, cudaDataType y, cudaDataType z, cublasComputeType_t compute) {
    return cublasGemmEx(handle, kN, kN, 1, 1, 1, &one, a.data(), x, 1, b.data(), y, 1, &one, c.data(), z, 1, compute,
                        CUBLAS_GEMM_DEFAULT);
  };
  EXPECT_EQ(types(CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(types(CUDA_R_32F, CUDA_R_32F, CUDA_R_16BF, CUBLAS_COMPUTE_32F), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(types(CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F_FAST_TF32), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(types(CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_64F), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
}

TEST(Refusal, OfHandlesThatAreNotReady) {
  const Stream stream;
  const DeviceArray<float> a(1);
  const DeviceArray<float> c(1);
  const DeviceArray<char> workspace(4096);
  const float one = 1.0F;
  const auto gemm = [&](cublasHandle_t handle) {
    return cublasSgemm(handle, kN, kN, 1, 1, 1, &one, a.data(), 1, a.data(), 1, &one, c.data(), 1);
  };
  EXPECT_EQ(gemm(nullptr), CUBLAS_STATUS_NOT_INITIALIZED);
  cublasHandle_t handle = nullptr;
  ASSERT_EQ(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(gemm(handle), CUBLAS_STATUS_NOT_INITIALIZED);  // it would use the default stream
  EXPECT_EQ(cublasSetStream(handle, nullptr), CUBLAS_STATUS_INVALID_VALUE);

  // "cublasSetStream() unconditionally resets the workspace": set in this order it would be lost.
  EXPECT_EQ(cublasSetWorkspace(handle, workspace.data() + 16, 1024), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasSetWorkspace(handle, workspace.data(), 5000), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasSetWorkspace(handle, workspace.data(), 4096), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasSetStream(handle, stream), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(gemm(handle), CUBLAS_STATUS_NOT_INITIALIZED);
  EXPECT_EQ(cublasSetWorkspace(handle, workspace.data(), 4096), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(gemm(handle), CUBLAS_STATUS_SUCCESS);

  EXPECT_EQ(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(gemm(handle), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cublasDestroy(handle), CUBLAS_STATUS_SUCCESS);
}

TEST(Handle, Settings) {
  const Stream stream;
  const Handle handle(stream);
  cudaStream_t bound = nullptr;
  EXPECT_EQ(cublasGetStream(handle, &bound), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(bound, static_cast<cudaStream_t>(stream));
  cublasMath_t math = CUBLAS_PEDANTIC_MATH;
  EXPECT_EQ(cublasGetMathMode(handle, &math), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(math, CUBLAS_DEFAULT_MATH);
  EXPECT_EQ(cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasGetMathMode(handle, &math), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(math, CUBLAS_TF32_TENSOR_OP_MATH);
  int version = 0;
  EXPECT_EQ(cublasGetVersion(handle, &version), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(version, CUBLAS_VERSION);
  EXPECT_STREQ(cublasGetStatusName(CUBLAS_STATUS_INVALID_VALUE), "CUBLAS_STATUS_INVALID_VALUE");
}

}  // namespace

}  // namespace simclr::test
