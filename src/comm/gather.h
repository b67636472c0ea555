// Bootstrap-time exchange of small plain structs and texts. Not for the step: it takes memory.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "src/comm/collectives.h"

namespace simclr {

// Every rank's struct, by rank.
template <typename T>
std::vector<T> gather(Collectives& collectives, const T& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all(collectives.size());
  collectives.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

// Rank 0's text, on every rank.
inline std::string broadcast_text(Collectives& collectives, std::string text) {
  auto size = std::ssize(text);
  collectives.broadcast(std::as_writable_bytes(std::span(&size, 1)), 0);
  text.resize(size);
  collectives.broadcast(std::span(text), 0);
  return text;
}

}  // namespace simclr
