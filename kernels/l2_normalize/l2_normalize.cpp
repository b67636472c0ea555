// Checks shapes once for all devices, then calls the overload of the device.
#include "kernels/l2_normalize/l2_normalize.h"

namespace simclr {
namespace {

void check_same_shape(const ConstMatrix& a, const ConstMatrix& b, size_t norms) {
  SIMCLR_CHECK(a.rows == b.rows && a.cols == b.cols && a.rows >= 0 && a.cols >= 1, "[{}, {}] against [{}, {}]", a.rows,
               a.cols, b.rows, b.cols);
  SIMCLR_CHECK(a.stride >= a.cols && b.stride >= b.cols, "strides {} and {} for {} columns", a.stride, b.stride,
               a.cols);
  SIMCLR_CHECK(norms == static_cast<size_t>(a.rows), "{} norms for {} rows", norms, a.rows);
}

}  // namespace

void l2_normalize_forward(const Exec& exec, const ConstMatrix& z, const FloatMatrix& e, std::span<double> norms) {
  check_same_shape(z, e, norms.size());
  std::visit([&](const auto& device) { detail::l2_normalize_forward(device, z, e, norms); }, exec);
}

void l2_normalize_backward(const Exec& exec, const ConstFloatMatrix& e, std::span<const double> norms,
                           const ConstFloatMatrix& grad_e, const Matrix& grad_z) {
  check_same_shape(e, grad_e, norms.size());
  check_same_shape(e, grad_z, norms.size());
  SIMCLR_CHECK(ConstElements(e.data) != ConstElements(grad_z.data) || e.rows == 0,
               "grad_z overwrites e, which the row still needs");
  std::visit([&](const auto& device) { detail::l2_normalize_backward(device, e, norms, grad_e, grad_z); }, exec);
}

}  // namespace simclr
