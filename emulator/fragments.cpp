// The arithmetic of a warp's matrix product, done for all lanes by the last that comes (block.cpp).
#include "emulator/fragments.h"

#include <bit>
#include <cstring>

namespace simclr::emulator {

namespace {

constexpr int kSide = 16;

float towards_zero(double value) {
  constexpr uint64_t kBeyondFloat = (uint64_t{1} << 29) - 1;  // of the mantissa
  return static_cast<float>(std::bit_cast<double>(std::bit_cast<uint64_t>(value) & ~kBeyondFloat));
}

}  // namespace

void multiply_for_all_lanes(const std::array<uint64_t, kLanes>& operands) {
  const auto lane_operands = [&](int lane) -> const LaneOperands& {
    return *reinterpret_cast<const LaneOperands*>(operands[lane]);
  };
  const int depth = lane_operands(0).depth;
  double a[kSide][kSide], b[kSide][kSide], sums[kSide][kSide];
  for (int lane = 0; lane < kLanes; ++lane) {
    const LaneOperands& own = lane_operands(lane);
    for (int i = 0; i < depth / 2; ++i) {
      const Place in_a = place_in_a(depth, lane, i), in_b = place_in_b(depth, lane, i);
      a[in_a.row][in_a.column] = static_cast<double>(own.a[i]);
      b[in_b.row][in_b.column] = static_cast<double>(own.b[i]);
    }
    for (int i = 0; i < 8; ++i) {
      const Place place = place_in_accumulator(lane, i);
      sums[place.row][place.column] = static_cast<double>(own.c[i]);
    }
  }
  for (int row = 0; row < kSide; ++row) {
    for (int k = 0; k < depth; ++k) {
      const double left = a[row][k];
      for (int column = 0; column < kSide; ++column) sums[row][column] += left * b[k][column];
    }
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < 8; ++i) {
      const Place place = place_in_accumulator(lane, i);
      lane_operands(lane).d[i] = towards_zero(sums[place.row][place.column]);
    }
  }
}

}  // namespace simclr::emulator
