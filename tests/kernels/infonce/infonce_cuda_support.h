// What the tests of both algorithms of InfoNCE on CUDA share: from projector outputs to the loss and its gradient, by
// the ops on one rank.
#pragma once

#include "kernels/infonce_streaming/infonce_streaming.h"
#include "kernels/l2_normalize/l2_normalize.h"
#include "kernels/row_order/row_order.h"
#include "tests/kernels/cuda_support.h"
#include "tests/kernels/infonce/infonce_support.h"

namespace simclr::test {

template <typename T>
std::span<T> span_of(const test::DeviceArray<T>& array) {
  return {array.data(), array.count()};
}

struct CudaMeasured {
  double loss;
  std::vector<float> e, grad_z;
};

// From z [2B, C] in the global order to dL/dz, on one rank with one shard, where both orders are the same.
inline CudaMeasured measure_on_cuda(const std::vector<float>& z, const InfoNceProblem& p, bool streaming) {
  ScratchNeed need = infonce_scratch(p);
  need.widen(streaming_scratch(p, true));
  const test::CudaRun cuda(Precision::kFp32, need);
  const int64_t rows = p.keys(), columns = p.columns;
  constexpr DataType kFloat = DataType::kFloat32;
  const test::CudaMatrix z_in(kFloat, rows, columns, columns, z), e(kFloat, rows, columns, columns),
      grad_e(kFloat, rows, columns, columns), keys(kFloat, rows, columns, columns),
      grad_z(kFloat, rows, columns, columns);
  const test::DeviceArray<double> norms(static_cast<size_t>(rows)), shard_loss(1), loss(1);
  const test::DeviceArray<std::byte> memory(infonce_saved_bytes(p));
  l2_normalize_forward(cuda.exec(), z_in.view(), e.view(), span_of(norms));
  if (streaming) {
    const StreamingSaved saved = streaming_saved(p, span_of(memory));
    streaming_forward(cuda.exec(), e.view(), p, saved, span_of(shard_loss));
    streaming_backward(cuda.exec(), e.view(), p, saved, {saved.log_denominators, static_cast<size_t>(rows)},
                       grad_e.view());
  } else {
    const InfoNceSaved saved = infonce_saved(p, span_of(memory));
    infonce_forward(cuda.exec(), e.view(), p, saved, span_of(shard_loss));
    infonce_backward(cuda.exec(), e.view(), p, saved, grad_e.view(), keys.view());
    add_rows(cuda.exec(), keys.view(), grad_e.view());
  }
  infonce_mean_loss(cuda.exec(), shard_loss.data(), p.keys(), loss.data());
  l2_normalize_backward(cuda.exec(), e.view(), {norms.data(), norms.count()}, grad_e.view(), grad_z.view());
  return {.loss = loss.download()[0], .e = e.plain(), .grad_z = grad_z.plain()};
}

}  // namespace simclr::test
