// Facts about a kernel from the loaded ELF files: its name, and where its library's thread-local block is.
#pragma once

#include <cstddef>
#include <string>

namespace simclr::emulator {

// Demangled, without the parameters; "at 0x1234" when the file has been stripped. Slow: for messages.
std::string symbol_name(const void* function);

struct StaticShared {
  void* begin = nullptr;  // of the calling thread
  size_t bytes = 0;       // 0: the library has no thread-local variables
  bool in_program = false;
};
// Under runtime_lock().
StaticShared static_shared_of(const void* kernel);

}  // namespace simclr::emulator
