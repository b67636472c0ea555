// The memory of a step's feature maps and of their gradients: one buffer in which pieces whose lifetimes do not overlap
// share their place. Layers declare in their constructors what they need and for how long; allocate() then places all
// pieces, which are valid from there on.
//
// Moments count the ops of forward in their order; backward runs them in reverse, the op of moment t at backward_of(t).
// What backward needs thus lives from t to backward_of(t): the memory of the last layers is free again when the
// gradients of the first ones, the largest, are computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/common/elements.h"
#include "src/device/context.h"

namespace simclr {

class ActivationArena {
 public:
  using Moment = int64_t;
  static constexpr Moment backward_of(Moment forward) { return (Moment{1} << 40) - forward; }
  Moment next() { return moment_++; }

  struct Lifetime {
    Moment first = 0, last = 0;  // the op that writes the piece, the last op that reads it; both included
  };
  // elements: in the device's storage type. Returns the piece's number for data(). Only before allocate().
  int add(int64_t elements, Lifetime lifetime);

  // Places all pieces and allocates the memory, zero-filled. Error(kDevice) if there is not enough.
  void allocate(Context& context);

  // 256-byte aligned, in the device's storage type; none before allocate().
  Elements data(int piece) const;
  size_t bytes() const { return memory_.bytes(); }
  std::span<std::byte> memory() const { return memory_.as<std::byte>(); }

 private:
  struct Piece {
    int64_t elements = 0;
    Lifetime lifetime;
    size_t offset = 0, bytes = 0;
  };
  void place(Piece& piece, const std::vector<const Piece*>& placed) const;

  Moment moment_ = 0;
  DataType storage_ = DataType::kFloat32;
  std::vector<Piece> pieces_;
  Buffer memory_;
};

}  // namespace simclr
