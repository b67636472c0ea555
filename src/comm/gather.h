// Bootstrap-time exchange of small plain structs. Not for the step: it takes memory.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include "src/comm/collectives.h"

namespace simclr {

// Every rank's struct, by rank.
template <typename T>
std::vector<T> gather(Collectives& collectives, const T& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all(static_cast<size_t>(collectives.size()));
  collectives.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

}  // namespace simclr
