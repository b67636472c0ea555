// cudaLaunchKernelEx for the host's compiler: the arguments are copied at the call, as CUDA does, pointers among them
// are looked up in the table of allocations, and the kernel is queued on the stream.
#pragma once

#include <driver_types.h>

#include <cstddef>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace simclr::emulator {

struct PointerArgument {
  const void* pointer;
  int position;  // from 0
};

struct KernelCall {
  const void* kernel = nullptr;
  std::vector<PointerArgument> pointers;
  std::function<void()> body;  // one CUDA thread
};

cudaError_t launch_kernel(const cudaLaunchConfig_t* config, KernelCall call);

// Pointers inside of structures are not seen.
template <typename T>
void note_pointer(const T& argument, int position, std::vector<PointerArgument>& pointers) {
  if constexpr (std::is_pointer_v<T>) {
    if constexpr (!std::is_function_v<std::remove_pointer_t<T>>) {
      pointers.push_back({const_cast<const void*>(static_cast<const volatile void*>(argument)), position});
    }
  }
}

}  // namespace simclr::emulator

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments), "the kernel takes another number of arguments");
  static_assert((!std::is_reference_v<Parameters> && ...), "a kernel takes its arguments by value");
  static_assert((std::is_trivially_copyable_v<Parameters> && ...), "arguments of a kernel are copied as bytes");
  using Copies = std::tuple<std::remove_cv_t<Parameters>...>;
  constexpr std::size_t kMostBytes = 32764;  // of arguments, CUDA 12.1 and newer
  static_assert(sizeof(Copies) <= kMostBytes, "too many bytes of arguments");

  Copies copies(std::forward<Arguments>(arguments)...);  // with implicit conversions only, as nvcc
  simclr::emulator::KernelCall call;
  call.kernel = reinterpret_cast<const void*>(kernel);
  std::apply(
      [&call](const auto&... copy) {
        int position = 0;
        (simclr::emulator::note_pointer(copy, position++, call.pointers), ...);
      },
      copies);
  call.body = [kernel, copies] { std::apply(kernel, copies); };
  return simclr::emulator::launch_kernel(config, std::move(call));
}
