#include "src/comm/nccl_collectives.h"

#include <algorithm>
#include <atomic>
#include <span>

#include "kernels/ordered_sum/ordered_sum.h"
#include "src/comm/element.h"
#include "src/comm/nccl_check.h"
#include "src/device/cuda_handles.h"

namespace simclr {
namespace {

constexpr int64_t kScratchBytes = int64_t{32} << 20;  // for the parts that arrive; longer sums go in pieces
constexpr int64_t kShortBytes = 32 << 10;             // a sum up to this size: all-gather, then each rank adds

ncclDataType_t nccl_type(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return ncclFloat32;
    case ElementType::kFloat64:
      return ncclFloat64;
    case ElementType::kByte:
      break;
  }
  return ncclUint8;
}

std::byte* at(const TypedSpan& span, int64_t element) {
  return static_cast<std::byte*>(span.data) + element * element_bytes(span.type);
}

class Communicator final : public CommunicatorHealth {
 public:
  Communicator(Collectives& bootstrap, CollectiveObserver* observer) {
    ncclUniqueId id{};
    if (bootstrap.rank() == 0) SIMCLR_NCCL(ncclGetUniqueId(&id));
    bootstrap.broadcast(std::as_writable_bytes(std::span(&id, 1)), 0);
    bootstrap.barrier();  // an MPI that works only while it is called has delivered the id to everybody
    ncclComm_t comm = nullptr;
    const InsideCollective waiting(observer);  // seconds, and as long as the last rank takes to come
    SIMCLR_NCCL(ncclCommInitRank(&comm, bootstrap.size(), id, bootstrap.rank()));
    comm_ = comm;
  }
  ~Communicator() override {
    if (ncclComm_t comm = comm_.exchange(nullptr)) ncclCommDestroy(comm);
  }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  ncclComm_t get() const { return comm_; }

  std::string error() noexcept override {
    ncclComm_t comm = comm_;
    ncclResult_t status = ncclSuccess;
    if (!comm || ncclCommGetAsyncError(comm, &status) != ncclSuccess) return "";
    return status == ncclSuccess || status == ncclInProgress ? "" : ncclGetErrorString(status);
  }
  void abort() noexcept override {
    hold_device_waits();  // what is queued behind the aborted operations runs on half of the data
    if (ncclComm_t comm = comm_.exchange(nullptr)) ncclCommAbort(comm);
  }

 private:
  std::atomic<ncclComm_t> comm_ = nullptr;
};

class Nccl : public NcclCollectives {
 public:
  Nccl(Collectives& bootstrap, Context& context, CollectiveObserver* observer)
      : rank_(bootstrap.rank()),
        size_(bootstrap.size()),
        device_(context.device()),
        compute_(std::get<CudaExec>(context.exec()).stream),
        stream_(make_urgent_stream()),
        computed_(make_event()),
        communicated_(make_event()),
        scratch_(context.allocate(kScratchBytes)),
        communicator_(std::make_shared<Communicator>(bootstrap, observer)) {
    exec_.stream = stream_.get();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::shared_ptr<CommunicatorHealth> health() override { return communicator_; }

  void all_gather(ConstTypedSpan send, TypedSpan receive) override {
    check_all_gather(send, receive, size_);
    in_order([&] { gather(send.data, receive.data, send.count, send.type); });
  }

  void ordered_sum(TypedSpan data) override {
    in_order([&] { sum(data); });
  }

  void start_ordered_sum(TypedSpan data) override {
    order_streams(compute_, computed_.get(), stream_.get());
    sum(data);
    SIMCLR_CUDA(cudaEventRecord(communicated_.get(), stream_.get()));
  }
  void finish_sums() override { SIMCLR_CUDA(cudaStreamWaitEvent(compute_, communicated_.get(), 0)); }

  void reduce_scatter(ConstTypedSpan send, TypedSpan receive) override {
    check_reduce_scatter(send, receive, size_);
    in_order([&] { scatter(send, receive); });
  }

  void broadcast(TypedSpan data, int root) override {
    check_root(root, size_);
    in_order([&] {
      SIMCLR_NCCL(ncclBroadcast(data.data, data.data, static_cast<size_t>(data.count), nccl_type(data.type), root,
                                comm(), stream_.get()));
    });
  }

  void barrier() override {
    all_gather(ConstTypedSpan{scratch_.data(), 1, ElementType::kByte},
               TypedSpan{scratch_.data() + kBufferAlignment, size_, ElementType::kByte});
    device_.synchronize();
  }

 protected:
  ncclComm_t comm() const { return communicator_->get(); }
  cudaStream_t stream() const { return stream_.get(); }

  virtual void sum(TypedSpan data) {
    check_sum(data, size_);
    check_tree(size_);
    if (size_ == 1 || data.count == 0) return;
    const int64_t width = element_bytes(data.type);
    if (data.count * width <= kShortBytes) {
      gather(data.data, scratch_.data(), data.count, data.type);
      add_parts(data.type, data.count, data.count, data.data);
      return;
    }
    const int64_t piece = kScratchBytes / width;  // elements: W slices of piece / W each
    for (int64_t begin = 0; begin < data.count; begin += piece)
      sum_piece({at(data, begin), std::min(piece, data.count - begin), data.type});
  }

  virtual void scatter(ConstTypedSpan send, TypedSpan receive) {
    check_tree(size_);
    const int64_t width = element_bytes(send.type), piece = kScratchBytes / width / size_;
    const auto* from = static_cast<const std::byte*>(send.data);
    for (int64_t begin = 0; begin < receive.count; begin += piece) {
      const int64_t count = std::min(piece, receive.count - begin);
      exchange([&](int r) { return from + (r * receive.count + begin) * width; }, [&](int) { return count; }, count,
               send.type);
      add_parts(send.type, count, count, at(receive, begin));
    }
  }

 private:
  // The operation after all that is computed so far, and before all that is computed from now on.
  template <typename Operation>
  void in_order(Operation&& operation) {
    order_streams(compute_, computed_.get(), stream_.get());
    operation();
    order_streams(stream_.get(), communicated_.get(), compute_);
  }

  void gather(const void* send, void* receive, int64_t count, ElementType type) {
    SIMCLR_NCCL(ncclAllGather(send, receive, static_cast<size_t>(count), nccl_type(type), comm(), stream_.get()));
  }

  // scratch[r] = what rank r sends here; count_for(r) elements from part_for(r) go to rank r. [W, count_mine]
  template <typename PartFn, typename CountFn>
  void exchange(PartFn part_for, CountFn count_for, int64_t count_mine, ElementType type) {
    const int64_t width = element_bytes(type);
    SIMCLR_NCCL(ncclGroupStart());
    for (int r = 0; r < size_; ++r) {
      SIMCLR_NCCL(ncclSend(part_for(r), static_cast<size_t>(count_for(r)), nccl_type(type), r, comm(), stream_.get()));
      SIMCLR_NCCL(ncclRecv(scratch_.data() + r * count_mine * width, static_cast<size_t>(count_mine), nccl_type(type),
                           r, comm(), stream_.get()));
    }
    SIMCLR_NCCL(ncclGroupEnd());
  }

  void sum_piece(const TypedSpan& data) {
    // Slice r belongs to rank r; the last ones may be shorter or empty.
    const int64_t slice = (data.count + size_ - 1) / size_;
    const auto begin_of = [&](int r) { return std::min(r * slice, data.count); };
    const auto count_of = [&](int r) { return begin_of(r + 1) - begin_of(r); };
    const int64_t mine = count_of(rank_);
    exchange([&](int r) { return at(data, begin_of(r)); }, count_of, mine, data.type);
    add_parts(data.type, mine, mine, at(data, begin_of(rank_)));
    if (slice * size_ == data.count) {
      gather(at(data, begin_of(rank_)), data.data, slice, data.type);
      return;
    }
    SIMCLR_NCCL(ncclGroupStart());
    for (int r = 0; r < size_; ++r) {
      if (count_of(r) > 0)
        SIMCLR_NCCL(ncclBroadcast(at(data, begin_of(r)), at(data, begin_of(r)), static_cast<size_t>(count_of(r)),
                                  nccl_type(data.type), r, comm(), stream_.get()));
    }
    SIMCLR_NCCL(ncclGroupEnd());
  }

  // sum = the W parts in scratch, added in tree order.
  void add_parts(ElementType type, int64_t count, int64_t stride, void* sum) {
    if (type == ElementType::kFloat32) {
      simclr::ordered_sum(exec_, scratch_.as<float>().data(), size_, stride, count, static_cast<float*>(sum));
    } else {
      simclr::ordered_sum(exec_, scratch_.as<double>().data(), size_, stride, count, static_cast<double*>(sum));
    }
  }

  const int rank_, size_;
  Device& device_;
  cudaStream_t compute_;
  CudaStream stream_;
  CudaEvent computed_, communicated_;
  CudaExec exec_;
  Buffer scratch_;
  std::shared_ptr<Communicator> communicator_;
};

// `train.reduction: fastest`: NCCL's own reductions, for any number of ranks; their order is the library's.
class FastestNccl final : public Nccl {
 public:
  using Nccl::Nccl;

 protected:
  void sum(TypedSpan data) override {
    check_sum(data, size());
    SIMCLR_NCCL(ncclAllReduce(data.data, data.data, static_cast<size_t>(data.count), nccl_type(data.type), ncclSum,
                              comm(), stream()));
  }
  void scatter(ConstTypedSpan send, TypedSpan receive) override {
    SIMCLR_NCCL(ncclReduceScatter(send.data, receive.data, static_cast<size_t>(receive.count), nccl_type(send.type),
                                  ncclSum, comm(), stream()));
  }
};

}  // namespace

std::unique_ptr<NcclCollectives> make_nccl_collectives(Collectives& bootstrap, Context& context, Reduction reduction,
                                                       CollectiveObserver* observer) {
  if (reduction == Reduction::kFastest) return std::make_unique<FastestNccl>(bootstrap, context, observer);
  return std::make_unique<Nccl>(bootstrap, context, observer);
}

std::string nccl_version() {
  int version = 0;
  SIMCLR_NCCL(ncclGetVersion(&version));
  return fmt::format("NCCL {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace simclr
