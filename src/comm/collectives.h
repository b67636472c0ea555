// The communicator of the training step: everything that ranks exchange after bootstrap. One screen on purpose.
// Implementations: MpiCollectives and SingleProcessCollectives (host memory), NcclCollectives (GPU memory), and
// StagedCollectives, which carries host memory over those of a GPU.
//
// All ranks call the same operations in the same order with the same counts. On the CPU an operation is complete when
// it returns; on a GPU it is queued, in order with what the device's stream computes before and after. A failure throws
// Error(kDevice); a rank that does not come is noticed by the watchdog (watchdog.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace simclr {

enum class ElementType { kByte, kFloat32, kFloat64 };

// A typed run of elements; count is elements, never bytes.
template <bool kConst>
struct BasicTypedSpan {
  using Pointer = std::conditional_t<kConst, const void*, void*>;
  Pointer data = nullptr;
  int64_t count = 0;
  ElementType type = ElementType::kByte;

  BasicTypedSpan() = default;
  BasicTypedSpan(Pointer data_in, int64_t count_in, ElementType type_in)
      : data(data_in), count(count_in), type(type_in) {}
  template <typename T, size_t kExtent>
  BasicTypedSpan(std::span<T, kExtent> s) requires(kConst || !std::is_const_v<T>)  // implicit: call sites pass spans
      : data(s.data()), count(std::ssize(s)), type(type_of<std::remove_const_t<T>>()) {}
  template <bool kOther>  // a template, so that the copy constructor stays the compiler's own
  BasicTypedSpan(const BasicTypedSpan<kOther>& o) requires(kConst && !kOther)
      : data(o.data), count(o.count), type(o.type) {}

 private:
  template <typename T>
  static constexpr ElementType type_of() {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> || sizeof(T) == 1, "float, double or bytes");
    return std::is_same_v<T, float>    ? ElementType::kFloat32
           : std::is_same_v<T, double> ? ElementType::kFloat64
                                       : ElementType::kByte;
  }
};
using TypedSpan = BasicTypedSpan<false>;
using ConstTypedSpan = BasicTypedSpan<true>;

class Collectives {
 public:
  virtual ~Collectives() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // receive[r * send.count ...] = rank r's send. receive.count == size() * send.count; no overlap.
  virtual void all_gather(ConstTypedSpan send, TypedSpan receive) = 0;

  // data = sum over ranks, added in the tree order ((r0+r1)+(r2+r3))+..., so with each rank's own subtree of shards in
  // place the bits do not depend on size(). size() is a power of two. Float32 or float64.
  virtual void ordered_sum(TypedSpan data) = 0;

  // ordered_sum that overlaps with the computation: data is not touched between the call and finish_sums(), and what is
  // queued after finish_sums() sees all sums. Where nothing can overlap, the sum is done at once.
  virtual void start_ordered_sum(TypedSpan data) { ordered_sum(data); }
  virtual void finish_sums() {}

  // receive = elements [rank() * receive.count, (rank()+1) * receive.count) of the ordered sum of send.
  // send.count == size() * receive.count; send is left as it was.
  virtual void reduce_scatter(ConstTypedSpan send, TypedSpan receive) = 0;

  // data of rank root reaches all.
  virtual void broadcast(TypedSpan data, int root) = 0;

  // Returns when every rank has called it; on a GPU also when all that was queued before is done.
  virtual void barrier() = 0;
};

}  // namespace simclr
