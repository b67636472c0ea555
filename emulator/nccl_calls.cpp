// The operations of the fake NCCL: checks of what can be known at the call, groups, and the queueing.
#include <algorithm>
#include <utility>

#include "emulator/nccl_communicator.h"
#include "emulator/nccl_operations.h"
#include "emulator/runtime.h"

namespace simclr::emulator::nccl {
namespace {

// ---- groups: operations wait for the last ncclGroupEnd ----

struct Pending {
  cudaStream_t stream;
  const char* what;
  std::function<void()> work;
};
struct PendingTransfers {
  std::shared_ptr<Segment> segment;
  cudaStream_t stream;
  std::vector<Transfer> transfers;
};
thread_local int depth = 0;
thread_local std::vector<Pending> pending;
thread_local std::vector<PendingTransfers> pending_transfers;

ncclResult_t flush() {
  ncclResult_t result = ncclSuccess;
  for (auto& group : std::exchange(pending_transfers, {}))
    pending.push_back({group.stream, "ncclSend/ncclRecv",
                       [segment = group.segment, transfers = group.transfers] { run_transfers(*segment, transfers); }});
  for (auto& one : std::exchange(pending, {}))
    if (enqueue(one.stream, one.what, one.work) != cudaSuccess) result = ncclUnhandledCudaError;
  return result;
}

ncclResult_t end_call() {
  return depth > 0 ? ncclSuccess : flush();
}

// ---- checks ----

ncclResult_t check_place(const Comm& comm, cudaStream_t stream, const char* what) {
  if (!comm.segment)
    return misuse(ncclInvalidArgument, "%s: no communicator, or one that was destroyed or aborted", what);
  if (const ncclResult_t status = comm.segment->status(); status != ncclSuccess) return status;
  if (!check_stream(stream, what)) return ncclInvalidArgument;
  if (stream_device(stream) != comm.device)
    return misuse(ncclInvalidArgument, "%s: the stream is of device %d, the communicator of device %d", what,
                  stream_device(stream), comm.device);
  return ncclSuccess;
}

ncclResult_t check_buffer(const Comm& comm, const void* data, size_t bytes, const char* which, const char* what) {
  if (inside_device(data, bytes, comm.device)) return ncclSuccess;
  return misuse(ncclInvalidArgument, "%s: the %s buffer takes %zu bytes, its pointer is %s", what, which, bytes,
                describe_pointer(data));
}

bool overlap(const void* a, size_t a_bytes, const void* b, size_t b_bytes) {
  const auto x = reinterpret_cast<uintptr_t>(a), y = reinterpret_cast<uintptr_t>(b);
  return a_bytes > 0 && b_bytes > 0 && x < y + b_bytes && y < x + a_bytes;
}

// in_place: where the receive buffer may lie relative to the send buffer, in bytes.
ncclResult_t collective(const Call& call, const void* send, void* receive, uint64_t send_count, uint64_t receive_count,
                        int64_t in_place, ncclComm_t handle, cudaStream_t stream) {
  const char* what = name_of(call.kind);
  const Comm comm = find_comm(handle);
  if (const auto status = check_place(comm, stream, what); status != ncclSuccess) return status;
  const auto type = static_cast<ncclDataType_t>(call.type);
  const size_t element = size_of(type);
  if (element == 0)
    return misuse(ncclInvalidArgument, "%s: data type %d, which the fake does not have", what, call.type);
  if ((call.kind == kAllReduce || call.kind == kReduceScatter) && !can_reduce(type, static_cast<ncclRedOp_t>(call.op)))
    return misuse(ncclInvalidArgument, "%s: operation %d on %s", what, call.op, name_of(type));
  if (call.root < 0 || call.root >= comm.segment->ranks())
    return misuse(ncclInvalidArgument, "%s: root %d of %d ranks", what, call.root, comm.segment->ranks());
  const size_t send_bytes = send_count * element, receive_bytes = receive_count * element;
  if (const auto status = check_buffer(comm, send, send_bytes, "send", what); status != ncclSuccess) return status;
  if (const auto status = check_buffer(comm, receive, receive_bytes, "receive", what); status != ncclSuccess)
    return status;
  if (overlap(send, send_bytes, receive, receive_bytes) &&
      static_cast<const char*>(receive) != static_cast<const char*>(send) + in_place * static_cast<int64_t>(element))
    return misuse(ncclInvalidUsage, "%s: the buffers overlap otherwise than in-place", what);
  pending.push_back({stream, what, [segment = comm.segment, call, send, receive] {
                       run_collective(*segment, call, static_cast<const std::byte*>(send),
                                      static_cast<std::byte*>(receive));
                     }});
  return end_call();
}

ncclResult_t transfer(bool is_send, void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t handle,
                      cudaStream_t stream) {
  const char* what = is_send ? "ncclSend" : "ncclRecv";
  const Comm comm = find_comm(handle);
  if (const auto status = check_place(comm, stream, what); status != ncclSuccess) return status;
  if (peer < 0 || peer >= comm.segment->ranks())
    return misuse(ncclInvalidArgument, "%s: peer %d of %d ranks", what, peer, comm.segment->ranks());
  if (size_of(type) == 0)
    return misuse(ncclInvalidArgument, "%s: data type %d, which the fake does not have", what, type);
  if (const auto status = check_buffer(comm, data, count * size_of(type), is_send ? "send" : "receive", what);
      status != ncclSuccess)
    return status;
  if (peer == comm.segment->rank() && depth == 0)
    return misuse(ncclInvalidUsage, "%s: to oneself, outside of a group: it would wait forever", what);
  const auto same = std::find_if(pending_transfers.begin(), pending_transfers.end(), [&](const PendingTransfers& p) {
    return p.segment == comm.segment && p.stream == stream;
  });
  auto& group = same != pending_transfers.end()
                    ? *same
                    : pending_transfers.emplace_back(PendingTransfers{comm.segment, stream, {}});
  group.transfers.push_back(
      {.is_send = is_send, .data = static_cast<std::byte*>(data), .count = count, .type = type, .peer = peer});
  return end_call();
}

}  // namespace
}  // namespace simclr::emulator::nccl

using namespace simclr::emulator::nccl;  // NOLINT: the entry points below stand outside of every namespace

extern "C" {

ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (depth == 0) return misuse(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  return --depth > 0 ? ncclSuccess : flush();
}

ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return collective({kAllReduce, type, op, 0, count}, send, receive, count, count, 0, comm, stream);
}

ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  const Comm found = find_comm(comm);
  const bool sends = found.segment && found.segment->rank() == root;
  return collective({kBroadcast, type, 0, root, count}, send, receive, sends ? count : 0, count, 0, comm, stream);
}

ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  const Comm found = find_comm(comm);
  const auto ranks = static_cast<uint64_t>(found.segment ? found.segment->ranks() : 0);
  const int64_t before = found.segment ? found.segment->rank() * static_cast<int64_t>(count) : 0;
  return collective({kAllGather, type, 0, 0, count}, send, receive, count, count * ranks, -before, comm, stream);
}

ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  const Comm found = find_comm(comm);
  const auto ranks = static_cast<uint64_t>(found.segment ? found.segment->ranks() : 0);
  const int64_t before = found.segment ? found.segment->rank() * static_cast<int64_t>(count) : 0;
  return collective({kReduceScatter, type, op, 0, count}, send, receive, count * ranks, count, before, comm, stream);
}

ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return transfer(true, const_cast<void*>(data), count, type, peer, comm, stream);
}

ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return transfer(false, data, count, type, peer, comm, stream);
}

}  // extern "C"
