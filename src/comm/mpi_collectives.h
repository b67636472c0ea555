// Collectives over MPI, on host memory: the ones of the CPU path. Any count works; messages are cut into pieces, which
// changes no bits, since each element is summed alone.
//
// ordered_sum: every rank receives its slice from all others, adds the W slices in tree order and sends the sum to all:
// 2(W-1)/W of the buffer per rank, as a ring all-reduce moves, in log2(W) levels of additions. Short buffers go to
// all ranks whole and everybody adds: one message round instead of two, and the same bits.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "src/comm/collective_observer.h"
#include "src/comm/collectives.h"
#include "src/comm/mpi_session.h"

namespace simclr {

// Where messages are cut. The defaults are for use, other values for tests.
struct MessageSizes {
  int64_t short_bytes = 4096;               // a sum up to this size: all-gather, then each rank adds
  int64_t piece_bytes = 1 << 20;            // per step of a longer sum; also bounds the inner buffers
  int64_t direct_bytes = int64_t{1} << 30;  // received by one MPI call at most; MPI counts in int
};

class MpiCollectives : public Collectives {
 public:
  // The session (with MPI) and the observer, which may be null, outlive this.
  MpiCollectives(const MpiSession& session, CollectiveObserver* observer, const MessageSizes& sizes = {});
  ~MpiCollectives() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void all_gather(ConstTypedSpan send, TypedSpan receive) override;
  void ordered_sum(TypedSpan data) override;
  void reduce_scatter(ConstTypedSpan send, TypedSpan receive) override;
  void broadcast(TypedSpan data, int root) override;
  void barrier() override;

 protected:
  // Memory for the parts that arrive; grows, never shrinks.
  std::byte* stage(int64_t bytes);

  CollectiveObserver* const observer_;
  const MessageSizes sizes_;

 private:
  void sum_short(std::byte* data, int64_t count, ElementType type);
  void sum_long(std::byte* data, int64_t count, ElementType type);
  // Receives bytes_mine from each rank into parts + r * bytes_mine, while bytes_of(r) bytes at part_of(r) go to rank r.
  template <typename PartFn, typename BytesFn>
  void exchange(PartFn part_of, BytesFn bytes_for, std::byte* parts, int64_t bytes_mine);

  struct Requests;

  const int rank_, size_;
  std::vector<std::byte> stage_;
  std::vector<int> counts_, offsets_;  // [W], of the all-gather of slices
  std::unique_ptr<Requests> requests_;
};

// `train.reduction: fastest`: sums by MPI's own reductions, for any number of ranks. Their order is the library's.
class FastestMpiCollectives final : public MpiCollectives {
 public:
  using MpiCollectives::MpiCollectives;
  void ordered_sum(TypedSpan data) override;
  void reduce_scatter(ConstTypedSpan send, TypedSpan receive) override;
};

}  // namespace simclr
