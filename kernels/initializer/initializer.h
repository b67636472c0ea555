// Initial weights as functions of (seed, parameter name, element): every rank makes the same ones, in any order.
//   pair k: 128 random bits = Philox4x32-10 of counter (k, hash of the name) and key (seed, kInitialWeights)
//   u, v = 53 of them each, in (0, 1]
//   uniform: values[2k] = bound (2u - 1),                  values[2k + 1] = bound (2v - 1)
//   normal:  values[2k] = sigma sqrt(-2 ln u) cos(2 pi v), values[2k + 1] the same with sin   (Box and Muller 1958)
// Computed in double, rounded to float once.
//
// A run starts from the same bits on every device. For uniform, arithmetic as IEEE 754 has it gives them. ln, cos and
// sin of two libraries differ in the last bits of a double, which the rounding to float hides but for one element in
// about ten million: that of a number so close to the middle of two floats that the difference may decide. CUDA finds
// these by the libraries' bounds of error (rounding.h), leaves NaN there and lists them; who calls fills them in with
// normal_weight, the CPU's number.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/common/exec.h"
#include "kernels/common/philox.h"

namespace simclr {

// Where the random numbers of one parameter come from.
struct WeightStream {
  PhiloxKey key;
  uint64_t name = 0;
};
WeightStream weight_stream(uint64_t seed, std::string_view parameter_name);

// Elements that a device has left to the host, in no order. Of 100 million normal ones about nine are expected.
struct HardToRound {
  static constexpr uint64_t kMost = 255;
  uint64_t count = 0;  // may be above kMost: then elements are missing from the list
  int64_t element[kMost] = {};
};

// Sets all of values (device memory). *hard, in device memory too, is all zeros before; the CPU leaves it so. No
// scratch.
void draw_normal(const Exec& exec, const WeightStream& stream, double sigma, std::span<float> values,
                 HardToRound* hard);
void draw_uniform(const Exec& exec, const WeightStream& stream, double bound, std::span<float> values);

// One element of the CPU's draw_normal.
float normal_weight(const WeightStream& stream, double sigma, int64_t element);

}  // namespace simclr
