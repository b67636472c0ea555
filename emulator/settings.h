// What the environment asks of the emulator. Read once, at the first use; a value that is not in the lists ends the
// process, so that a test that is misspelt does not pass by default.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

namespace simclr::emulator {

enum class Order { kForward, kReverse, kRandom };
enum class Streams { kEager, kLazy, kRandom };
enum class NoDevice { kNo, kDriver, kDevice };

struct Settings {
  Order order = Order::kForward;      // EMULATOR_ORDER=forward|reverse|random: of threads in a block, blocks in a grid
  Streams streams = Streams::kEager;  // EMULATOR_STREAMS=eager|lazy|random: when queued work runs, see runtime.h
  uint64_t seed = 1;                  // EMULATOR_SEED, of both kinds of random
  bool protect = false;               // EMULATOR_PROTECT=1: host code that touches device memory gets SIGSEGV
  bool leaks = false;                 // EMULATOR_LEAKS=1: memory never freed is listed at exit, exit code 99
  bool race_blocks = false;           // EMULATOR_RACE_BLOCKS=1 (ThreadSanitizer): blocks of a grid race with each other
  int devices = 1;                    // EMULATOR_DEVICES: number of GPUs of the machine
  size_t device_bytes = size_t{4} << 30;  // EMULATOR_MEMORY_MIB, of each GPU
  int multiprocessors = 4;                // EMULATOR_MULTIPROCESSORS, of each GPU
  NoDevice no_device = NoDevice::kNo;     // EMULATOR_NO_DEVICE=driver|device: what the machine lacks
  int fault_device = -1;                  // EMULATOR_FAULT=DEVICE:N breaks that device
  long long fault_kernel = 0;             //   in its N-th kernel, from 1
};

const Settings& settings();

// The one source of random choices; not for use without runtime_lock().
std::mt19937_64& random_engine();

}  // namespace simclr::emulator
