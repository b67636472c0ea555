#include "src/nn/activation_arena.h"

#include <algorithm>

namespace simclr {

int ActivationArena::add(int64_t elements, Lifetime lifetime) {
  SIMCLR_CHECK(memory_.bytes() == 0, "the arena has been laid out");
  SIMCLR_CHECK(elements > 0 && lifetime.first <= lifetime.last, "a piece of {} elements from {} to {}", elements,
               lifetime.first, lifetime.last);
  pieces_.push_back({.elements = elements, .lifetime = lifetime, .offset = 0, .bytes = 0});
  return static_cast<int>(pieces_.size()) - 1;
}

// Sets the lowest offset that is free during the piece's whole lifetime. placed: ordered by offset.
void ActivationArena::place(Piece& piece, const std::vector<const Piece*>& placed) const {
  for (const Piece* other : placed) {
    const bool together = other->lifetime.first <= piece.lifetime.last && piece.lifetime.first <= other->lifetime.last;
    if (!together || other->offset + other->bytes <= piece.offset) continue;
    if (piece.offset + piece.bytes <= other->offset) return;
    piece.offset = other->offset + other->bytes;
  }
}

// Greedy, the largest first (Pisarchyk and Lee 2020, "Efficient Memory Management for Deep Neural Net Inference");
// pieces of equal size in the order in which they were added.
void ActivationArena::allocate(Context& context) {
  storage_ = storage_of(context.exec());
  const size_t element_bytes = size_of(storage_);
  std::vector<Piece*> order;
  for (Piece& piece : pieces_) {
    const size_t bytes = piece.elements * element_bytes;
    piece.bytes = (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
    order.push_back(&piece);
  }
  std::stable_sort(order.begin(), order.end(), [](const Piece* a, const Piece* b) { return a->bytes > b->bytes; });
  std::vector<const Piece*> placed;
  size_t end = 0;
  for (Piece* piece : order) {
    place(*piece, placed);
    const auto behind = std::upper_bound(placed.begin(), placed.end(), piece->offset,
                                         [](size_t offset, const Piece* p) { return offset < p->offset; });
    placed.insert(behind, piece);
    end = std::max(end, piece->offset + piece->bytes);
  }
  memory_ = context.allocate(end);
}

Elements ActivationArena::data(int piece) const {
  if (memory_.bytes() == 0) return {nullptr, storage_};
  return {memory_.data() + pieces_.at(piece).offset, storage_};
}

}  // namespace simclr
