// What the tests of CUDA kernels share: device memory that starts as NaN, plain arrays in and out of the GPU's layouts
// (NHWC with padded channels, matrices with padded rows) in either storage type, and a CudaExec to run ops on. Not a
// test, and nothing here computes what an op computes.
#pragma once

#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/common/exec.h"
#include "tests/kernels/kernel_support.h"

namespace simclr::test {

// Fails the calling test, and says why.
inline void expect_success(cudaError_t status, const char* call) {
  EXPECT_EQ(status, cudaSuccess) << call << ": " << cudaGetErrorString(status);
}

// Device memory of `count` elements. Every byte starts as 0xFF: NaN as float, double and bfloat16, -1 as int.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t count) : count_(count) {
    const size_t some = std::max<size_t>(bytes(), 1);  // no allocation is empty
    expect_success(cudaMalloc(reinterpret_cast<void**>(&data_), some), "cudaMalloc");
    expect_success(cudaMemset(data_, 0xFF, some), "cudaMemset");
    expect_success(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  explicit DeviceArray(std::span<const T> values) : DeviceArray(values.size()) { upload(values); }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(std::span<const T>(values)) {}
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(DeviceArray&& other) noexcept : data_(std::exchange(other.data_, nullptr)), count_(other.count_) {}
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  DeviceArray& operator=(DeviceArray&&) = delete;

  T* data() const { return data_; }
  size_t count() const { return count_; }
  size_t bytes() const { return count_ * sizeof(T); }

  void upload(std::span<const T> values) {
    ASSERT_EQ(values.size(), count_);
    expect_success(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice), "cudaMemcpy");
    expect_success(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  // Waits for everything that is queued on the device.
  std::vector<T> download() const {
    std::vector<T> values(count_);
    expect_success(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    expect_success(cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t count_ = 0;
};

// What storing makes of values: the same floats, or each rounded to bfloat16. A reference that is to see the inputs of
// the device takes these.
inline std::vector<float> as_stored(DataType type, std::span<const float> values) {
  std::vector<float> stored(values.begin(), values.end());
  if (type == DataType::kBfloat16)
    for (float& v : stored) v = __bfloat162float(__float2bfloat16(v));
  return stored;
}

// Device memory for floats that are stored as `type`.
class StoredArray {
 public:
  StoredArray(DataType type, size_t count) : type_(type), bytes_(count * size_of(type)) {}  // NaN
  StoredArray(DataType type, std::span<const float> values) : StoredArray(type, values.size()) { upload(values); }

  Elements data() const { return {bytes_.data(), type_}; }
  DataType type() const { return type_; }
  size_t count() const { return bytes_.count() / size_of(type_); }
  void upload(std::span<const float> values) {
    std::vector<std::byte> bytes(bytes_.count());
    ASSERT_EQ(values.size(), count());
    for (size_t i = 0; i < values.size(); ++i) {
      if (type_ == DataType::kBfloat16) {
        const __nv_bfloat16 v = __float2bfloat16(values[i]);
        std::memcpy(&bytes[i * sizeof v], &v, sizeof v);
      } else {
        std::memcpy(&bytes[i * sizeof(float)], &values[i], sizeof(float));
      }
    }
    bytes_.upload(bytes);
  }
  std::vector<float> download() const {
    const std::vector<std::byte> bytes = bytes_.download();
    std::vector<float> values(count());
    for (size_t i = 0; i < values.size(); ++i) {
      if (type_ == DataType::kBfloat16) {
        __nv_bfloat16 v;
        std::memcpy(&v, &bytes[i * sizeof v], sizeof v);
        values[i] = __bfloat162float(v);
      } else {
        std::memcpy(&values[i], &bytes[i * sizeof(float)], sizeof(float));
      }
    }
    return values;
  }

 private:
  DataType type_;
  DeviceArray<std::byte> bytes_;
};

// From plain [rows, C, places] to [rows, places, padded] and back; the padding is filled with `padding`.
inline std::vector<float> to_nhwc(std::span<const float> plain, int64_t rows, int64_t channels, int64_t places,
                                  int64_t padded, float padding = 0.0F) {
  std::vector<float> nhwc(rows * places * padded, padding);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t p = 0; p < places; ++p) nhwc[(i * places + p) * padded + c] = plain[(i * channels + c) * places + p];
  return nhwc;
}
template <typename T>
std::vector<T> from_nhwc(std::span<const T> nhwc, int64_t rows, int64_t channels, int64_t places, int64_t padded) {
  std::vector<T> plain(rows * channels * places);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t p = 0; p < places; ++p) plain[(i * channels + c) * places + p] = nhwc[(i * places + p) * padded + c];
  return plain;
}
inline bool padding_is_zero(std::span<const float> values, int64_t width, int64_t padded) {
  for (size_t i = 0; i < values.size(); ++i)
    if (static_cast<int64_t>(i) % padded >= width && values[i] != 0.0F) return false;
  return true;
}

// FeatureMaps of kernel_support.h on the GPU: NHWC, owned.
class CudaFeatureMaps {
 public:
  // NaN everywhere, padding included: the op has to write all of it.
  CudaFeatureMaps(DataType type, const Shape& s)
      : shape_(s), array_(type, static_cast<size_t>(s.rows() * places() * padded())) {}
  // plain [shards*samples, C, H, W]; the padding channels are zero.
  CudaFeatureMaps(DataType type, const Shape& s, std::span<const float> plain) : CudaFeatureMaps(type, s) {
    array_.upload(to_nhwc(plain, s.rows(), s.channels, places(), padded()));
  }

  Activation view() const {
    return {array_.data(), shape_.shards, shape_.samples, shape_.channels, shape_.height, shape_.width, Layout::kNhwc};
  }
  std::vector<float> plain() const {
    return from_nhwc<float>(array_.download(), shape_.rows(), shape_.channels, places(), padded());
  }
  bool padding_is_zero() const { return test::padding_is_zero(array_.download(), shape_.channels, padded()); }

 private:
  int64_t places() const { return shape_.height * shape_.width; }
  int64_t padded() const { return padded_cols(shape_.channels); }

  Shape shape_;
  StoredArray array_;
};

// Images for the first convolution: NHWC with kCudaImageChannels channels.
class CudaImages {
 public:
  CudaImages(DataType type, const Shape& s, std::span<const float> plain)
      : shape_(s), array_(type, to_nhwc(plain, s.rows(), s.channels, s.height * s.width, kCudaImageChannels)) {}
  ConstImages view() const {
    return {array_.data(), shape_.shards, shape_.samples, shape_.channels, shape_.height, shape_.width, Layout::kNhwc};
  }

 private:
  Shape shape_;
  StoredArray array_;
};

// A matrix for ops of any element type and for those of float32 alone, which as<float>() checks.
struct CudaMatrixView : Matrix {
  operator FloatMatrix() const { return as<float>(); }
  operator ConstFloatMatrix() const { return as<float>(); }
};

// A row-major matrix on the GPU, owned.
class CudaMatrix {
 public:
  CudaMatrix(DataType type, int64_t rows, int64_t cols, int64_t stride)  // NaN everywhere
      : rows_(rows), cols_(cols), stride_(stride), array_(type, static_cast<size_t>(rows * stride)) {}
  // plain [rows, cols]; the padding has the given value.
  CudaMatrix(DataType type, int64_t rows, int64_t cols, int64_t stride, std::span<const float> plain,
             float padding = 0.0F)
      : CudaMatrix(type, rows, cols, stride) {
    array_.upload(to_nhwc(plain, rows, cols, 1, stride, padding));
  }

  CudaMatrixView view() const { return {Matrix{array_.data(), rows_, cols_, stride_}}; }
  std::vector<float> plain() const { return from_nhwc<float>(array_.download(), rows_, cols_, 1, stride_); }
  bool padding_is_zero() const { return test::padding_is_zero(array_.download(), cols_, stride_); }

 private:
  int64_t rows_, cols_, stride_;
  StoredArray array_;
};

// A stream of its own, a cuBLAS handle bound to it, and a workspace full of NaN. The destructor waits for the stream.
class CudaRun {
 public:
  CudaRun(Precision precision, const ScratchNeed& need) : workspace_(need.workspace_bytes) {
    expect_success(cudaStreamCreateWithFlags(&cuda_.stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    EXPECT_EQ(cublasCreate(&cuda_.blas), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasSetStream(cuda_.blas, cuda_.stream), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasSetWorkspace(cuda_.blas, blas_workspace_.data(), blas_workspace_.bytes()), CUBLAS_STATUS_SUCCESS);
    cuda_.precision = precision;
    cuda_.workspace = workspace_.data();
    cuda_.workspace_bytes = workspace_.bytes();
    exec_ = cuda_;
  }
  ~CudaRun() {
    cudaStreamSynchronize(cuda_.stream);
    cublasDestroy(cuda_.blas);
    cudaStreamDestroy(cuda_.stream);
  }
  CudaRun(const CudaRun&) = delete;
  CudaRun& operator=(const CudaRun&) = delete;

  const Exec& exec() const { return exec_; }
  const CudaExec& cuda() const { return cuda_; }

 private:
  static constexpr size_t kBlasWorkspaceBytes = 4 << 20;

  DeviceArray<std::byte> workspace_;
  DeviceArray<std::byte> blas_workspace_{kBlasWorkspaceBytes};
  CudaExec cuda_;
  Exec exec_;
};

inline Precision precision_of(DataType type) {
  return type == DataType::kBfloat16 ? Precision::kBf16 : Precision::kFp32;
}
inline std::string name_of(DataType type) {
  return type == DataType::kBfloat16 ? "bf16" : "fp32";
}
// Unit roundoff of a storage type: 2^-24, or 2^-8 for the 8 bits of a bfloat16's significand.
inline double unit_of(DataType type) {
  return type == DataType::kBfloat16 ? 0x1p-8 : kUnit;
}
inline constexpr DataType kStorageTypes[] = {DataType::kFloat32, DataType::kBfloat16};

}  // namespace simclr::test
