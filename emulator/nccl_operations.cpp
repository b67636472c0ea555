#include "emulator/nccl_operations.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <type_traits>

namespace simclr::emulator::nccl {
namespace {

// bfloat16 as its bits, for arithmetic in float.
struct Bfloat16 {
  uint16_t bits;
  explicit Bfloat16(float value) {
    const auto whole = std::bit_cast<uint32_t>(value);
    bits = static_cast<uint16_t>(std::isnan(value) ? 0x7FFFU : (whole + 0x7FFFU + ((whole >> 16) & 1U)) >> 16);
  }
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }  // NOLINT: as a number
};

template <typename T>
T combine(T a, T b, ncclRedOp_t op) {
  switch (op) {
    case ncclProd:
      return T(a * b);
    case ncclMax:
      return b > a ? b : a;
    case ncclMin:
      return b < a ? b : a;
    default:
      return T(a + b);
  }
}

template <typename F>
void with_type(ncclDataType_t type, F&& f) {
  switch (type) {
    case ncclInt8:
      return f(int8_t{});
    case ncclUint8:
      return f(uint8_t{});
    case ncclInt32:
      return f(int32_t{});
    case ncclUint32:
      return f(uint32_t{});
    case ncclInt64:
      return f(int64_t{});
    case ncclUint64:
      return f(uint64_t{});
    case ncclFloat32:
      return f(float{});
    case ncclFloat64:
      return f(double{});
    case ncclBfloat16:
      return f(Bfloat16(0.0F));
    default:
      return;
  }
}

std::string describe(const Call& call) {
  char text[200];
  std::snprintf(
      text, sizeof text, "%s of %llu x %s%s%s", name_of(call.kind), static_cast<unsigned long long>(call.count),
      name_of(static_cast<ncclDataType_t>(call.type)),
      call.kind == kBroadcast ? (" from rank " + std::to_string(call.root)).c_str() : "",
      call.kind == kAllReduce || call.kind == kReduceScatter ? (", operation " + std::to_string(call.op)).c_str() : "");
  return text;
}

// Every rank must be in the same call with the same arguments.
bool meet(Segment& segment, const Call& call) {
  RankState* ranks = segment.header().rank;
  RankState& mine = ranks[segment.rank()];
  const uint64_t number = mine.entered + 1;
  mine.calls[number % 2] = call;
  mine.entered = number;
  if (!segment.barrier([&] { return describe(call) + ", collective " + std::to_string(number) + " of this rank,"; }))
    return false;
  for (int r = 0; r < segment.ranks(); ++r) {
    const Call& other = ranks[r].calls[number % 2];
    if (other == call) continue;
    segment.fail(ncclInvalidUsage, "collective " + std::to_string(number) + " of this rank is " + describe(call) +
                                       ", of rank " + std::to_string(r) + " it is " + describe(other));
    return false;
  }
  return true;
}

}  // namespace

const char* name_of(int kind) {
  switch (kind) {
    case kAllReduce:
      return "ncclAllReduce";
    case kBroadcast:
      return "ncclBroadcast";
    case kAllGather:
      return "ncclAllGather";
    default:
      return "ncclReduceScatter";
  }
}

const char* name_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
      return "int8";
    case ncclUint8:
      return "uint8";
    case ncclInt32:
      return "int32";
    case ncclUint32:
      return "uint32";
    case ncclInt64:
      return "int64";
    case ncclUint64:
      return "uint64";
    case ncclFloat32:
      return "float32";
    case ncclFloat64:
      return "float64";
    case ncclBfloat16:
      return "bfloat16";
    default:
      return "a type that the fake does not have";
  }
}

size_t size_of(ncclDataType_t type) {
  size_t bytes = 0;
  with_type(type, [&](auto zero) { bytes = sizeof zero; });
  return bytes;
}

bool can_reduce(ncclDataType_t type, ncclRedOp_t op) {
  const bool real = type == ncclFloat32 || type == ncclFloat64 || type == ncclBfloat16;
  return op == ncclSum || op == ncclProd || op == ncclMax || op == ncclMin || (op == ncclAvg && real);
}

void reduce(std::byte* acc, const std::byte* in, size_t count, ncclDataType_t type, ncclRedOp_t op) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    auto* a = reinterpret_cast<T*>(acc);
    const auto* b = reinterpret_cast<const T*>(in);
    for (size_t i = 0; i < count; ++i) a[i] = combine(a[i], b[i], op);
  });
}

void finish(std::byte* acc, size_t count, ncclDataType_t type, ncclRedOp_t op, int ranks) {
  if (op != ncclAvg) return;
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    auto* a = reinterpret_cast<T*>(acc);
    if constexpr (!std::is_integral_v<T>)  // can_reduce() leaves no others
      for (size_t i = 0; i < count; ++i) a[i] = T(a[i] / static_cast<float>(ranks));
  });
}

void run_collective(Segment& segment, const Call& call, const std::byte* send, std::byte* receive) {
  if (!segment.enter() || !meet(segment, call)) return;
  const auto type = static_cast<ncclDataType_t>(call.type);
  const auto op = static_cast<ncclRedOp_t>(call.op);
  const int ranks = segment.ranks(), rank = segment.rank();
  const size_t element = size_of(type), count = call.count;
  // A reduce-scatter's slot has a part for every rank.
  const size_t parts = call.kind == kReduceScatter ? static_cast<size_t>(ranks) : 1;
  const size_t chunk = kSlotBytes / element / parts;
  const auto blame = [&] { return describe(call); };
  const auto add_slots = [&](std::byte* out, size_t offset, size_t elements) {
    std::memcpy(out, segment.slot(0) + offset, elements * element);
    for (int r = 1; r < ranks; ++r) reduce(out, segment.slot(r) + offset, elements, type, op);
    finish(out, elements, type, op, ranks);
  };
  for (size_t at = 0; at < count; at += chunk) {
    const size_t some = std::min(chunk, count - at);
    if (call.kind != kBroadcast || rank == call.root)
      for (size_t part = 0; part < parts; ++part)
        std::memcpy(segment.slot(rank) + part * some * element, send + (part * count + at) * element, some * element);
    if (!segment.barrier(blame)) return;
    std::byte* out = receive + at * element;
    switch (call.kind) {
      case kAllReduce:
        add_slots(out, 0, some);
        break;
      case kReduceScatter:
        add_slots(out, static_cast<size_t>(rank) * some * element, some);
        break;
      case kBroadcast:
        std::memcpy(out, segment.slot(call.root), some * element);
        break;
      default:
        for (int r = 0; r < ranks; ++r)
          std::memcpy(out + static_cast<size_t>(r) * count * element, segment.slot(r), some * element);
    }
    if (!segment.barrier(blame)) return;
  }
}

namespace {

// Copies what fits between a transfer and its pipe; whether anything moved.
bool move_bytes(Pipe& pipe, Transfer& t, size_t bytes) {
  auto& position = t.is_send ? pipe.written : pipe.read;
  const uint64_t there = pipe.written - pipe.read;
  const size_t some = std::min({bytes - t.done, static_cast<size_t>(t.is_send ? kPipeBytes - there : there),
                                kPipeBytes - static_cast<size_t>(position % kPipeBytes)});
  std::byte* in_pipe = pipe.bytes + position % kPipeBytes;
  if (t.is_send) {
    std::memcpy(in_pipe, t.data + t.done, some);
  } else {
    std::memcpy(t.data + t.done, in_pipe, some);
  }
  t.done += some;
  position += some;
  return some > 0;
}

// One step of one transfer; whether it got on.
bool step(Segment& segment, Transfer& t) {
  const int rank = segment.rank();
  Pipe& pipe = t.is_send ? segment.pipe(rank, t.peer) : segment.pipe(t.peer, rank);
  const size_t bytes = t.count * size_of(t.type);
  bool moved = false;
  if (!t.begun) {
    if (t.is_send) {
      if (pipe.announced != pipe.received) return false;  // the message before has not arrived
      pipe.type = t.type;
      pipe.count = t.count;
      ++pipe.announced;
    } else {
      if (pipe.announced == pipe.received) return false;
      if (pipe.type != t.type || pipe.count != t.count) {
        segment.fail(ncclInvalidUsage, "ncclRecv of " + std::to_string(t.count) + " x " + name_of(t.type) +
                                           " from rank " + std::to_string(t.peer) + " meets its ncclSend of " +
                                           std::to_string(pipe.count) + " x " +
                                           name_of(static_cast<ncclDataType_t>(pipe.type)));
        return true;
      }
    }
    t.begun = moved = true;
  }
  if (move_bytes(pipe, t, bytes)) moved = true;
  if (t.done == bytes) {
    if (!t.is_send) ++pipe.received;
    t.ended = moved = true;
  }
  return moved;
}

}  // namespace

void run_transfers(Segment& segment, std::vector<Transfer> transfers) {
  if (!segment.enter()) return;
  const auto unfinished = [&](int r) {
    return std::any_of(transfers.begin(), transfers.end(), [&](const Transfer& t) { return !t.ended && t.peer == r; });
  };
  const auto round = [&] {  // whether all have ended
    bool moved = true;
    while (moved) {
      moved = false;
      for (auto t = transfers.begin(); t != transfers.end(); ++t) {
        const bool waits = t->ended || std::any_of(transfers.begin(), t, [&](const Transfer& before) {
                             return !before.ended && before.peer == t->peer && before.is_send == t->is_send;
                           });
        if (!waits && step(segment, *t)) moved = true;
        if (segment.status() != ncclSuccess) return false;
      }
    }
    return std::all_of(transfers.begin(), transfers.end(), [](const Transfer& t) { return t.ended; });
  };
  segment.wait(
      round, [] { return std::string("a group of ncclSend and ncclRecv"); }, unfinished);
}

}  // namespace simclr::emulator::nccl
