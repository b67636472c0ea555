#include "src/comm/mpi_collectives.h"

#include <mpi.h>

#include <algorithm>
#include <cstring>

#include "src/comm/element.h"

namespace simclr {
namespace {

MPI_Datatype mpi_type(ElementType type) {
  return type == ElementType::kFloat32 ? MPI_FLOAT : type == ElementType::kFloat64 ? MPI_DOUBLE : MPI_BYTE;
}

void copy_bytes(std::byte* to, const std::byte* from, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

std::byte* bytes_at(TypedSpan span) {
  return static_cast<std::byte*>(span.data);
}
const std::byte* bytes_at(ConstTypedSpan span) {
  return static_cast<const std::byte*>(span.data);
}

}  // namespace

struct MpiCollectives::Requests {
  std::vector<MPI_Request> open;
};

MpiCollectives::MpiCollectives(const MpiSession& session, CollectiveObserver* observer, const MessageSizes& sizes)
    : observer_(observer),
      sizes_(sizes),
      rank_(session.rank()),
      size_(session.size()),
      counts_(session.size()),
      offsets_(session.size()),
      requests_(std::make_unique<Requests>()) {
  SIMCLR_CHECK(session.uses_mpi(), "MPI collectives without MPI");
  requests_->open.reserve(2 * static_cast<size_t>(size_));
}

MpiCollectives::~MpiCollectives() = default;

std::byte* MpiCollectives::stage(int64_t bytes) {
  if (std::ssize(stage_) < bytes) stage_.resize(bytes);
  return stage_.data();
}

void MpiCollectives::all_gather(ConstTypedSpan send, TypedSpan receive) {
  check_all_gather(send, receive, size_);
  const int64_t bytes = bytes_of(send);
  if (bytes == 0) return;
  const InsideCollective inside(observer_);
  if (bytes * size_ <= sizes_.direct_bytes) {
    mpi_check(MPI_Allgather(send.data, static_cast<int>(bytes), MPI_BYTE, receive.data, static_cast<int>(bytes),
                            MPI_BYTE, MPI_COMM_WORLD),
              "all_gather (MPI_Allgather)");
    return;
  }
  // Each piece arrives rank by rank, one after the other; then it is copied to where rank r's run lies.
  const int64_t piece = std::max<int64_t>(std::min(sizes_.piece_bytes, sizes_.direct_bytes) / size_, 1);
  for (int64_t begin = 0; begin < bytes; begin += piece) {
    const int64_t length = std::min(piece, bytes - begin);
    std::byte* parts = stage(length * size_);  // [W, length]
    mpi_check(MPI_Allgather(bytes_at(send) + begin, static_cast<int>(length), MPI_BYTE, parts, static_cast<int>(length),
                            MPI_BYTE, MPI_COMM_WORLD),
              "all_gather (MPI_Allgather)");
    for (int r = 0; r < size_; ++r) copy_bytes(bytes_at(receive) + r * bytes + begin, parts + r * length, length);
  }
}

void MpiCollectives::ordered_sum(TypedSpan data) {
  check_sum(data, size_);
  check_tree(size_);
  if (data.count == 0 || size_ == 1) return;
  const InsideCollective inside(observer_);
  const int64_t element = element_bytes(data.type);
  const int64_t piece = std::max<int64_t>(sizes_.piece_bytes / element, 1);
  for (int64_t begin = 0; begin < data.count; begin += piece) {
    const int64_t count = std::min(piece, data.count - begin);
    std::byte* at = bytes_at(data) + begin * element;
    count* element <= sizes_.short_bytes ? sum_short(at, count, data.type) : sum_long(at, count, data.type);
  }
}

void MpiCollectives::sum_short(std::byte* data, int64_t count, ElementType type) {
  const int64_t bytes = count * element_bytes(type);
  std::byte* parts = stage(bytes * size_);  // [W, count]
  mpi_check(MPI_Allgather(data, static_cast<int>(count), mpi_type(type), parts, static_cast<int>(count), mpi_type(type),
                          MPI_COMM_WORLD),
            "ordered_sum (MPI_Allgather)");
  ordered_tree_sum_typed(
      type, [&](int64_t r) { return parts + r * bytes; }, size_, 0, count);
  copy_bytes(data, parts, bytes);
}

void MpiCollectives::sum_long(std::byte* data, int64_t count, ElementType type) {
  const int64_t element = element_bytes(type);
  const int64_t slice = ((count + size_ - 1) / size_ + 15) / 16 * 16;  // whole vectors; the last ranks may have less
  for (int r = 0; r < size_; ++r) {
    offsets_[r] = static_cast<int>(std::min(r * slice, count));
    counts_[r] = static_cast<int>(std::min((r + 1) * slice, count)) - offsets_[r];
  }
  const int64_t mine = counts_[rank_];
  std::byte* parts = stage(mine * element * size_);  // [W, mine]
  exchange([&](int r) { return data + offsets_[r] * element; }, [&](int r) { return counts_[r] * element; }, parts,
           mine * element);
  ordered_tree_sum_typed(
      type, [&](int64_t r) { return parts + r * mine * element; }, size_, 0, mine);
  mpi_check(MPI_Allgatherv(parts, static_cast<int>(mine), mpi_type(type), data, counts_.data(), offsets_.data(),
                           mpi_type(type), MPI_COMM_WORLD),
            "ordered_sum (MPI_Allgatherv)");
}

template <typename PartFn, typename BytesFn>
void MpiCollectives::exchange(PartFn part_of, BytesFn bytes_for, std::byte* parts, int64_t bytes_mine) {
  constexpr int kTag = 1;
  std::vector<MPI_Request>& open = requests_->open;
  open.clear();
  // Rank r starts with its right neighbor, so that not all send to rank 0 first.
  for (int step = 1; step < size_; ++step) {
    const int from = (rank_ + size_ - step) % size_;
    open.emplace_back();
    mpi_check(MPI_Irecv(parts + from * bytes_mine, static_cast<int>(bytes_mine), MPI_BYTE, from, kTag, MPI_COMM_WORLD,
                        &open.back()),
              "ordered sum (MPI_Irecv)");
  }
  for (int step = 1; step < size_; ++step) {
    const int to = (rank_ + step) % size_;
    open.emplace_back();
    mpi_check(MPI_Isend(part_of(to), static_cast<int>(bytes_for(to)), MPI_BYTE, to, kTag, MPI_COMM_WORLD, &open.back()),
              "ordered sum (MPI_Isend)");
  }
  copy_bytes(parts + rank_ * bytes_mine, part_of(rank_), bytes_mine);
  mpi_check(MPI_Waitall(static_cast<int>(open.size()), open.data(), MPI_STATUSES_IGNORE), "ordered sum (MPI_Waitall)");
}

void MpiCollectives::reduce_scatter(ConstTypedSpan send, TypedSpan receive) {
  check_reduce_scatter(send, receive, size_);
  check_tree(size_);
  if (receive.count == 0) return;
  const InsideCollective inside(observer_);
  const int64_t element = element_bytes(send.type);
  const int64_t piece = std::max<int64_t>(sizes_.piece_bytes / element / size_, 1);
  for (int64_t begin = 0; begin < receive.count; begin += piece) {
    const int64_t count = std::min(piece, receive.count - begin);
    const int64_t bytes = count * element;
    std::byte* parts = stage(bytes * size_);  // [W, count]
    exchange([&](int r) { return bytes_at(send) + (r * receive.count + begin) * element; }, [&](int) { return bytes; },
             parts, bytes);
    ordered_tree_sum_typed(
        send.type, [&](int64_t r) { return parts + r * bytes; }, size_, 0, count);
    copy_bytes(bytes_at(receive) + begin * element, parts, bytes);
  }
}

void MpiCollectives::broadcast(TypedSpan data, int root) {
  check_root(root, size_);
  const InsideCollective inside(observer_);
  const int64_t bytes = bytes_of(data);
  for (int64_t begin = 0; begin < bytes; begin += sizes_.direct_bytes) {
    const int length = static_cast<int>(std::min(sizes_.direct_bytes, bytes - begin));
    mpi_check(MPI_Bcast(bytes_at(data) + begin, length, MPI_BYTE, root, MPI_COMM_WORLD), "broadcast (MPI_Bcast)");
  }
}

void MpiCollectives::barrier() {
  const InsideCollective inside(observer_);
  mpi_check(MPI_Barrier(MPI_COMM_WORLD), "barrier (MPI_Barrier)");
}

void FastestMpiCollectives::ordered_sum(TypedSpan data) {
  check_sum(data, size());
  const InsideCollective inside(observer_);
  const int64_t element = element_bytes(data.type);
  const int64_t piece = std::max<int64_t>(sizes_.direct_bytes / element, 1);
  for (int64_t begin = 0; begin < data.count; begin += piece) {
    const int count = static_cast<int>(std::min(piece, data.count - begin));
    mpi_check(MPI_Allreduce(MPI_IN_PLACE, bytes_at(data) + begin * element, count, mpi_type(data.type), MPI_SUM,
                            MPI_COMM_WORLD),
              "sum (MPI_Allreduce)");
  }
}

void FastestMpiCollectives::reduce_scatter(ConstTypedSpan send, TypedSpan receive) {
  check_reduce_scatter(send, receive, size());
  const InsideCollective inside(observer_);
  const int64_t element = element_bytes(send.type);
  const int64_t piece = std::max<int64_t>(sizes_.direct_bytes / element / size(), 1);
  for (int64_t begin = 0; begin < receive.count; begin += piece) {
    const int64_t count = std::min(piece, receive.count - begin);
    const std::byte* parts = bytes_at(send);
    if (count < receive.count) {  // the ranks' pieces are not contiguous
      std::byte* packed = stage(count * element * size());
      for (int r = 0; r < size(); ++r)
        copy_bytes(packed + r * count * element, bytes_at(send) + (r * receive.count + begin) * element,
                   count * element);
      parts = packed;
    }
    mpi_check(MPI_Reduce_scatter_block(parts, bytes_at(receive) + begin * element, static_cast<int>(count),
                                       mpi_type(send.type), MPI_SUM, MPI_COMM_WORLD),
              "reduce_scatter (MPI_Reduce_scatter_block)");
  }
}

}  // namespace simclr
