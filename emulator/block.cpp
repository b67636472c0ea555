// The scheduler of a block. Threads that have not begun are in `order`, those that may continue in `ready`.
#include "emulator/block.h"

#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/fiber.h"
#include "emulator/fragments.h"
#include "emulator/races.h"
#include "emulator/settings.h"

uint3 threadIdx;
uint3 blockIdx;
dim3 blockDim;
dim3 gridDim;

namespace simclr::emulator {

namespace {

constexpr int kWarp = 32;

enum class State : uint8_t { kNew, kReady, kAtBarrier, kInWarp, kReturned };

struct Thread {
  uint3 index;
  State state = State::kNew;
  Fiber* fiber = nullptr;
  Where where;  // of its last barrier or collective
};

enum class Collective { kSync, kShuffle, kBallot, kProduct };

// The lanes of one mask meet here again and again; two tables in turn, since the first lane may come back before the
// last has read.
struct Meeting {
  unsigned mask = 0;
  unsigned arrived = 0;
  unsigned round = 0;
  Collective kind = Collective::kSync;
  Where where;
  std::array<std::array<uint64_t, kWarp>, 2> values{};
};

struct Block {
  const std::function<void()>* body = nullptr;
  void* dynamic_shared = nullptr;
  int size = 0;
  int returned = 0;
  std::vector<Thread> threads;
  std::vector<int> order;
  size_t begun = 0;
  std::vector<int> ready;
  size_t next_ready = 0;
  std::vector<std::deque<Meeting>> warps;
  std::string error;

  // __syncthreads
  int arrived = 0;
  int sum = 0;
  int result = 0;
  unsigned round = 0;
  Barrier kind = Barrier::kPlain;
  Where where;
  std::array<char[8], 2> order_marks{};  // addresses for races::, two in turn
};

Block& block = *new Block;
auto& idle_fibers = *new std::vector<Fiber*>;
auto& own_fibers = *new std::vector<Fiber*>;  // by races::slot, where threads keep their stacks
Fiber& cpu = *new Fiber;                      // the stack of the CPU's thread
Fiber* current = &cpu;

std::string name_place(const Where& where) {
  const std::string file = where.file;
  return file.substr(file.find_last_of('/') + 1) + ":" + std::to_string(where.line);
}

std::string name_thread(int thread) {
  const uint3 i = block.threads[thread].index;
  return "thread (" + std::to_string(i.x) + "," + std::to_string(i.y) + "," + std::to_string(i.z) + ")";
}

bool same_place(const Where& a, const Where& b) {
  return a.line == b.line && std::string_view(a.file) == b.file;
}

void note_error(const std::string& text) {
  if (block.error.empty()) block.error = text;
}

void become(Fiber* fiber, int thread) {
  fiber->thread = thread;
  block.threads[thread].fiber = fiber;
  block.threads[thread].state = State::kReady;
  threadIdx = block.threads[thread].index;
}

void run_threads(Fiber* fiber);

Fiber* fiber_for(int thread) {
  if (races::kOwnStacks) return own_fibers[races::slot(thread)];
  if (idle_fibers.empty()) return create_fiber(run_threads);
  Fiber* fiber = idle_fibers.back();
  idle_fibers.pop_back();
  return fiber;
}

// Continues with another thread than the current one, or on the CPU's own stack when none can.
void switch_away() {
  Fiber* from = current;
  Fiber* to = &cpu;
  if (block.error.empty()) {
    const bool any_ready = block.next_ready < block.ready.size();
    const bool overtake = any_ready && settings().order == Order::kRandom && random_engine()() % 2 == 0;
    if (block.begun < block.order.size() && !overtake) {
      const int thread = block.order[block.begun++];
      to = fiber_for(thread);
      become(to, thread);
    } else if (any_ready) {
      const int thread = block.ready[block.next_ready++];
      to = block.threads[thread].fiber;
      threadIdx = block.threads[thread].index;
    }
  }
  if (to == from) return;
  current = to;
  switch_fiber(from, to);
}

void wake(const std::vector<int>& threads) {
  auto& ready = block.ready;
  if (block.next_ready == ready.size()) {
    ready.clear();
    block.next_ready = 0;
  }
  const auto order = settings().order;
  const size_t begin = ready.size();
  if (order == Order::kReverse) {
    ready.insert(ready.end(), threads.rbegin(), threads.rend());
  } else {
    ready.insert(ready.end(), threads.begin(), threads.end());
  }
  if (order != Order::kRandom) return;
  auto& engine = random_engine();
  std::shuffle(ready.begin() + begin, ready.end(), engine);
  // Half of the times they overtake all others, so that a warp can run far ahead.
  if (engine() % 2 == 0) std::rotate(ready.begin() + block.next_ready, ready.begin() + begin, ready.end());
}

void open_barrier() {
  static auto& woken = *new std::vector<int>;
  const int waiting = block.arrived;
  block.result = block.kind == Barrier::kAnd ? block.sum == waiting : block.sum;
  block.arrived = 0;
  block.sum = 0;
  ++block.round;
  woken.clear();
  for (int t = 0; t < block.size; ++t) {
    if (block.threads[t].state == State::kAtBarrier) {
      block.threads[t].state = State::kReady;
      woken.push_back(t);
    }
  }
  wake(woken);
}

void end_thread(int thread) {
  block.threads[thread].state = State::kReturned;
  ++block.returned;
  if (block.arrived > 0) {
    note_error(name_thread(thread) + " returned while others wait in __syncthreads at " + name_place(block.where));
  }
}

// The loop of every fiber: one thread after the other, while there are new ones.
void run_threads(Fiber* fiber) {
  for (;;) {
    const int thread = fiber->thread;
    races::enter(thread);
    races::begin_thread();
    (*block.body)();
    races::end_thread();
    races::leave();
    end_thread(thread);
    if (!races::kOwnStacks && block.begun < block.order.size() && block.error.empty()) {
      become(fiber, block.order[block.begun++]);
      continue;
    }
    if (!races::kOwnStacks) idle_fibers.push_back(fiber);
    switch_away();
  }
}

// The lanes of the warp that exist: the last warp of a block may be short.
int lanes_of(int warp) {
  return std::min(kWarp, block.size - warp * kWarp);
}

Meeting& find_meeting(int warp, unsigned mask) {
  for (Meeting& m : block.warps[warp]) {
    if (m.mask == mask) return m;
  }
  Meeting& added = block.warps[warp].emplace_back();
  added.mask = mask;
  return added;
}

void wake_meeting(const Meeting& m, int warp, int but) {
  static auto& woken = *new std::vector<int>;
  woken.clear();
  for (int lane = 0; lane < kWarp; ++lane) {
    const int t = warp * kWarp + lane;
    if ((m.mask >> lane & 1U) == 0 || t == but) continue;
    block.threads[t].state = State::kReady;
    woken.push_back(t);
  }
  wake(woken);
}

// Leaves `value` on the table of the mask's lanes and returns the table when all have come.
const std::array<uint64_t, kWarp>& meet(unsigned mask, Collective kind, uint64_t value, Where where) {
  races::leave();
  const int thread = current->thread;
  const int warp = thread / kWarp;
  const unsigned lane = static_cast<unsigned>(thread % kWarp);
  if (const int lanes = lanes_of(warp); lanes < kWarp) mask &= (1U << lanes) - 1;
  if ((mask >> lane & 1U) == 0) {
    note_error("warp collective at " + name_place(where) + ": lane " + std::to_string(lane) +
               " is not in its own mask");
    switch_away();
  }
  Meeting& m = find_meeting(warp, mask);
  if (m.arrived == 0) {
    m.kind = kind;
    m.where = where;
  } else if (m.kind != kind || !same_place(m.where, where)) {
    note_error("lanes of a warp meet in different collectives: " + name_place(where) + " and " + name_place(m.where));
    switch_away();
  }
  auto& table = m.values[m.round % 2];
  table[lane] = value;
  races::enter(thread);
  races::release(table.data());
  races::leave();
  m.arrived |= 1U << lane;
  block.threads[thread].where = where;
  if (m.arrived == mask) {
    if (kind == Collective::kProduct) multiply_for_all_lanes(table);
    m.arrived = 0;
    ++m.round;
    wake_meeting(m, warp, thread);  // the last to arrive continues
  } else {
    block.threads[thread].state = State::kInWarp;
    switch_away();
  }
  races::enter(thread);
  races::acquire(table.data());
  return table;
}

std::string describe_deadlock() {
  std::string text = "deadlock:";
  int shown = 0;
  for (int t = 0; t < block.size && shown < 4; ++t) {
    if (block.threads[t].state == State::kReturned) continue;
    text += " " + name_thread(t) + " waits at " + name_place(block.threads[t].where) + ";";
    ++shown;
  }
  return text + " " + std::to_string(block.returned) + " of " + std::to_string(block.size) + " threads have returned";
}

}  // namespace

int meet_block(Barrier kind, int predicate, Where where) {
  const int thread = current->thread;
  void* mark = block.order_marks[block.round % 2];
  races::release(mark);
  races::leave();
  if (block.returned > 0) {
    note_error("__syncthreads at " + name_place(where) + " after threads of the block have returned");
    switch_away();
  }
  if (block.arrived == 0) {
    block.where = where;
    block.kind = kind;
  } else if (!same_place(block.where, where)) {
    note_error("divergent __syncthreads: " + name_thread(thread) + " at " + name_place(where) + ", others at " +
               name_place(block.where));
    switch_away();
  }
  block.threads[thread].state = State::kAtBarrier;
  block.threads[thread].where = where;
  block.sum += kind == Barrier::kPlain ? 0 : (predicate != 0 ? 1 : 0);
  if (++block.arrived == block.size) open_barrier();
  switch_away();
  const int result = block.result;
  races::enter(thread);
  races::acquire(mark);
  return kind == Barrier::kOr ? result != 0 : result;
}

uint64_t shuffle(Shuffle kind, unsigned mask, uint64_t bits, int operand, int width, Where where) {
  if (width < 1 || width > kWarp || !std::has_single_bit(static_cast<unsigned>(width))) {
    note_error("shuffle at " + name_place(where) + ": width " + std::to_string(width) +
               " is not a power of two up to 32");
  }
  const int lane = current->thread % kWarp;
  const int begin = lane & ~(width - 1);
  int source = 0;
  switch (kind) {
    case Shuffle::kIndex:
      source = begin + (operand & (width - 1));
      break;
    case Shuffle::kUp:
      source = lane - operand < begin ? lane : lane - operand;
      break;
    case Shuffle::kDown:
      source = lane + operand >= begin + width ? lane : lane + operand;
      break;
    case Shuffle::kXor:  // of a later group: one's own
      source = (lane ^ operand) >= begin + width ? lane : lane ^ operand;
      break;
  }
  const auto& table = meet(mask, Collective::kShuffle, bits, where);
  const bool defined = source < lanes_of(current->thread / kWarp) && (mask >> source & 1U) != 0;
  return defined ? table[source] : ~uint64_t{0};
}

unsigned ballot(unsigned mask, bool predicate, Where where) {
  const auto& table = meet(mask, Collective::kBallot, predicate ? 1 : 0, where);
  const int lanes = lanes_of(current->thread / kWarp);
  unsigned result = 0;
  for (int lane = 0; lane < lanes; ++lane) {
    if ((mask >> lane & 1U) != 0 && table[lane] != 0) result |= 1U << lane;
  }
  return result;
}

void meet_warp(unsigned mask, Where where) {
  meet(mask, Collective::kSync, 0, where);
}

void multiply_fragments(const LaneOperands& operands, Where where) {
  if (lanes_of(current->thread / kWarp) < kWarp) {
    races::leave();
    note_error("matrix product at " + name_place(where) + " by a warp of fewer than 32 threads");
    for (;;) switch_away();
  }
  meet(~0U, Collective::kProduct, reinterpret_cast<uint64_t>(&operands), where);
}

void refuse_fragment(const void* address, unsigned stride_bytes, Where where) {
  races::leave();
  note_error("fragment at " + name_place(where) + ": the address must be a multiple of 32 bytes and is " +
             std::to_string(reinterpret_cast<uintptr_t>(address) % 32) +
             " beyond, rows or columns must be multiples of 16 bytes apart and are " + std::to_string(stride_bytes));
  for (;;) switch_away();
}

int lane_of_thread() {
  return current->thread % kWarp;
}

void* dynamic_shared() {
  return block.dynamic_shared;
}

void trap(Where where) {
  races::leave();
  note_error("__trap at " + name_place(where) + " by " + name_thread(current->thread));
  for (;;) switch_away();
}

void prepare_blocks(dim3 threads, const std::function<void()>* body) {
  block.body = body;
  block.size = static_cast<int>(threads.x * threads.y * threads.z);
  block.threads.assign(block.size, Thread{});
  block.warps.assign((block.size + kWarp - 1) / kWarp, {});
  block.order.resize(block.size);
  for (int t = 0; t < block.size; ++t) {
    const unsigned i = static_cast<unsigned>(t);
    block.order[t] = t;
    block.threads[t].index = {i % threads.x, i / threads.x % threads.y, i / threads.x / threads.y};
  }
  if (settings().order == Order::kReverse) std::reverse(block.order.begin(), block.order.end());
  while (races::kOwnStacks && own_fibers.size() < 2 * block.threads.size()) {
    own_fibers.push_back(create_fiber(run_threads));
  }
}

std::string run_block(void* dynamic_shared) {
  block.dynamic_shared = dynamic_shared;
  block.returned = block.arrived = block.sum = 0;
  block.begun = block.next_ready = 0;
  block.ready.clear();
  for (Thread& t : block.threads) t.state = State::kNew;
  if (settings().order == Order::kRandom) std::shuffle(block.order.begin(), block.order.end(), random_engine());
  current = &cpu;
  switch_away();  // returns when no thread can continue
  if (block.error.empty() && block.returned != block.size) note_error(describe_deadlock());
  if (!block.error.empty()) {
    races::abandon();
    own_fibers.clear();
    for (auto& warp : block.warps) warp.clear();
  }
  return std::exchange(block.error, {});
}

}  // namespace simclr::emulator
