// Atomic operations of kernels, for the types CUDA has them for. Relaxed, as CUDA's; ThreadSanitizer sees them as
// atomic. Note that the order of float additions is the order of the threads: results differ between EMULATOR_ORDERs.
#pragma once

#include <atomic>
#include <type_traits>

namespace simclr::emulator {

template <typename T, typename... Types>
inline constexpr bool kOneOf = (std::is_same_v<T, Types> || ...);
template <typename T>
concept AtomicInteger = kOneOf<T, int, unsigned, unsigned long long>;
template <typename T>
concept AtomicNumber = AtomicInteger<T> || kOneOf<T, float, double>;

// Replaces *p by change(*p), returns what was there.
template <typename T, typename F>
T change_atomically(T* p, F&& change) {
  std::atomic_ref<T> place(*p);
  T old = place.load(std::memory_order_relaxed);
  while (!place.compare_exchange_weak(old, change(old), std::memory_order_relaxed)) {
  }
  return old;
}

}  // namespace simclr::emulator

// NOLINTBEGIN(readability-identifier-naming): CUDA's names
template <simclr::emulator::AtomicNumber T>
T atomicAdd(T* p, std::type_identity_t<T> value) {
  return simclr::emulator::change_atomically(p, [value](T old) { return static_cast<T>(old + value); });
}
template <simclr::emulator::AtomicInteger T>
T atomicSub(T* p, std::type_identity_t<T> value) {
  return simclr::emulator::change_atomically(p, [value](T old) { return static_cast<T>(old - value); });
}
template <simclr::emulator::AtomicInteger T>
T atomicMax(T* p, std::type_identity_t<T> value) {
  return simclr::emulator::change_atomically(p, [value](T old) { return old < value ? value : old; });
}
template <simclr::emulator::AtomicInteger T>
T atomicMin(T* p, std::type_identity_t<T> value) {
  return simclr::emulator::change_atomically(p, [value](T old) { return value < old ? value : old; });
}
template <simclr::emulator::AtomicInteger T>
T atomicOr(T* p, std::type_identity_t<T> value) {
  return simclr::emulator::change_atomically(p, [value](T old) { return static_cast<T>(old | value); });
}
template <simclr::emulator::AtomicInteger T>
T atomicAnd(T* p, std::type_identity_t<T> value) {
  return simclr::emulator::change_atomically(p, [value](T old) { return static_cast<T>(old & value); });
}
template <typename T>
requires simclr::emulator::AtomicInteger<T> || std::is_same_v<T, float> T atomicExch(T* p,
                                                                                     std::type_identity_t<T> value) {
  return std::atomic_ref<T>(*p).exchange(value, std::memory_order_relaxed);
}
template <simclr::emulator::AtomicInteger T>
T atomicCAS(T* p, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  std::atomic_ref<T>(*p).compare_exchange_strong(expected, value, std::memory_order_relaxed);
  return expected;
}
// NOLINTEND(readability-identifier-naming)
