// Progress callback: keeps the watchdog from mistaking long work that is not a step for a stall. The caller of the work
// passes what a beat does (in a run: Heartbeat::beat, src/comm/heartbeat.h); the work calls it between pieces.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>

namespace simclr {

// Called from the thread that started the work, at least once per piece that takes a noticeable time.
using Beat = std::function<void()>;
inline void no_beat() {}

inline constexpr size_t kBeatBytes = size_t{1} << 20;

// use(piece, bytes) for consecutive pieces of memory of a mebibyte at most, with a beat after each.
template <typename Use>
void in_pieces(const void* data, size_t bytes, const Beat& beat, Use&& use) {
  for (size_t at = 0; at < bytes; at += kBeatBytes) {
    use(static_cast<const std::byte*>(data) + at, std::min(kBeatBytes, bytes - at));
    beat();
  }
}

}  // namespace simclr
