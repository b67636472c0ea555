// Errors of the emulated device: said on stderr, kept as CUDA keeps them. One last error per thread, which
// cudaGetLastError takes away, and one sticky error per process, which stays.
#include <atomic>
#include <cstdarg>
#include <cstdio>

#include "emulator/errors.h"
#include "emulator/runtime.h"
#include "emulator/settings.h"

namespace simclr::emulator {

namespace {

thread_local cudaError_t last_error = cudaSuccess;
std::atomic<cudaError_t> sticky_error = cudaSuccess;

void print_line(const char* error, const char* format, va_list arguments) {
  char text[1024];
  std::vsnprintf(text, sizeof text, format, arguments);
  std::fprintf(stderr, "emulator: %s%s%s\n", error, *error != '\0' ? ": " : "", text);
  std::fflush(stderr);
}

}  // namespace

void complain(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print_line("", format, arguments);
  va_end(arguments);
}

cudaError_t refuse(cudaError_t error, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print_line(cudaGetErrorName(error), format, arguments);
  va_end(arguments);
  return remember(error);
}

void break_device(cudaError_t error, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print_line(cudaGetErrorName(error), format, arguments);
  va_end(arguments);
  cudaError_t none = cudaSuccess;
  sticky_error.compare_exchange_strong(none, error);  // the first one is the cause
}

cudaError_t broken() {
  return sticky_error;
}

void repair_device() {
  sticky_error = cudaSuccess;
  last_error = cudaSuccess;
}

cudaError_t device_available() {
  switch (settings().no_device) {
    case NoDevice::kDriver:
      return remember(cudaErrorInsufficientDriver);
    case NoDevice::kDevice:
      return remember(cudaErrorNoDevice);
    case NoDevice::kNo:
      break;
  }
  return cudaSuccess;
}

cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

cudaError_t peek_last_error() {
  const cudaError_t sticky = sticky_error;
  return sticky != cudaSuccess ? sticky : last_error;
}

cudaError_t take_last_error() {
  const cudaError_t error = peek_last_error();
  last_error = cudaSuccess;
  return error;
}

cudaError_t begin_call() {
  if (const cudaError_t error = device_available(); error != cudaSuccess) return error;
  return remember(broken());
}

}  // namespace simclr::emulator
