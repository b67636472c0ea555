// Stands before the toolkit's <mma.h>: matrix products of a warp (nvcuda::wmma) in the shapes that this project uses,
// 16x16x8 of tf32 and 16x16x16 of bfloat16, with float accumulators. A fragment has as many elements a lane as
// NVIDIA's, all NaN until it is filled or loaded.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "language/fragments.h"

// NOLINTBEGIN(readability-identifier-naming): CUDA's names
namespace nvcuda::wmma {

struct row_major;
struct col_major;
struct matrix_a;
struct matrix_b;
struct accumulator;
namespace precision {
struct tf32;
}
enum layout_t { mem_row_major, mem_col_major };

template <typename Use, int m, int n, int k, typename T, typename Layout = void>
class fragment;

namespace detail {
template <typename T, int size>
struct Elements {
  static constexpr int num_elements = size;
  using element_type = T;
  T x[size];
  Elements() { std::memset(static_cast<void*>(x), 0xFF, sizeof x); }
};
}  // namespace detail

template <typename Layout>
class fragment<matrix_a, 16, 16, 8, precision::tf32, Layout> : public detail::Elements<float, 4> {};
template <typename Layout>
class fragment<matrix_b, 16, 16, 8, precision::tf32, Layout> : public detail::Elements<float, 4> {};
template <>
class fragment<accumulator, 16, 16, 8, float> : public detail::Elements<float, 8> {};
template <typename Layout>
class fragment<matrix_a, 16, 16, 16, __nv_bfloat16, Layout> : public detail::Elements<__nv_bfloat16, 8> {};
template <typename Layout>
class fragment<matrix_b, 16, 16, 16, __nv_bfloat16, Layout> : public detail::Elements<__nv_bfloat16, 8> {};
template <>
class fragment<accumulator, 16, 16, 16, float> : public detail::Elements<float, 8> {};

namespace detail {

using simclr::emulator::Place;
using simclr::emulator::Where;

// CUDA requires the address aligned to 32 bytes and the distance between rows or columns to 16.
template <typename T>
void check_address(const T* p, unsigned stride, Where where) {
  const auto bytes = static_cast<unsigned>(stride * sizeof(T));
  if (reinterpret_cast<uintptr_t>(p) % 32 != 0 || bytes % 16 != 0) simclr::emulator::refuse_fragment(p, bytes, where);
}

template <typename Layout>
int64_t offset_of(Place place, unsigned stride) {
  const int64_t step = stride;
  return std::is_same_v<Layout, row_major> ? place.row * step + place.column : place.column * step + place.row;
}

// What a tensor core reads of an operand: of tf32 the upper 19 bits.
inline float operand_of(float value) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0xFFFFE000U);
}
inline float operand_of(__nv_bfloat16 value) {
  return __bfloat162float(value);
}

}  // namespace detail

// Rounds to 10 bits of mantissa, to nearest and away from zero in the middle.
inline float __float_to_tf32(float in) {
  const auto bits = std::bit_cast<uint32_t>(in);
  constexpr uint32_t kExponent = 0x7F800000U;
  if ((bits & kExponent) == kExponent) return in;  // infinite, or no number
  return std::bit_cast<float>((bits + 0x1000U) & 0xFFFFE000U);
}

template <typename Fragment>
void fill_fragment(Fragment& f, std::type_identity_t<typename Fragment::element_type> value) {
  for (auto& x : f.x) x = value;
}

// Loads and stores are not barriers between lanes, as on a GPU, and do not wait for other lanes, which the next product
// does.
template <int k, typename T, typename Layout, typename Element>
void load_matrix_sync(fragment<matrix_a, 16, 16, k, T, Layout>& f, const Element* p, unsigned stride,
                      detail::Where where = detail::Where::current()) {
  detail::check_address(p, stride, where);
  const int lane = simclr::emulator::lane_of_thread();
  for (int i = 0; i < f.num_elements; ++i) {
    f.x[i] = p[detail::offset_of<Layout>(simclr::emulator::place_in_a(k, lane, i), stride)];
  }
}
template <int k, typename T, typename Layout, typename Element>
void load_matrix_sync(fragment<matrix_b, 16, 16, k, T, Layout>& f, const Element* p, unsigned stride,
                      detail::Where where = detail::Where::current()) {
  detail::check_address(p, stride, where);
  const int lane = simclr::emulator::lane_of_thread();
  for (int i = 0; i < f.num_elements; ++i) {
    f.x[i] = p[detail::offset_of<Layout>(simclr::emulator::place_in_b(k, lane, i), stride)];
  }
}
template <int k>
void store_matrix_sync(float* p, const fragment<accumulator, 16, 16, k, float>& f, unsigned stride, layout_t layout,
                       detail::Where where = detail::Where::current()) {
  detail::check_address(p, stride, where);
  const int lane = simclr::emulator::lane_of_thread();
  for (int i = 0; i < f.num_elements; ++i) {
    const simclr::emulator::Place place = simclr::emulator::place_in_accumulator(lane, i);
    p[layout == mem_row_major ? detail::offset_of<row_major>(place, stride)
                              : detail::offset_of<col_major>(place, stride)] = f.x[i];
  }
}

template <int k, typename T, typename LayoutA, typename LayoutB>
void mma_sync(fragment<accumulator, 16, 16, k, float>& d, const fragment<matrix_a, 16, 16, k, T, LayoutA>& a,
              const fragment<matrix_b, 16, 16, k, T, LayoutB>& b, const fragment<accumulator, 16, 16, k, float>& c,
              detail::Where where = detail::Where::current()) {
  float left[k / 2], right[k / 2];
  for (int i = 0; i < k / 2; ++i) {
    left[i] = detail::operand_of(a.x[i]);
    right[i] = detail::operand_of(b.x[i]);
  }
  simclr::emulator::multiply_fragments({k, left, right, c.x, d.x}, where);
}

}  // namespace nvcuda::wmma
// NOLINTEND(readability-identifier-naming)
