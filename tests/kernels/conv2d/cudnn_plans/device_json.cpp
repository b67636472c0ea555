// cudnn_device_json FILE: writes how the real cuDNN describes the GPU of this machine, in the form that it takes in
// place of a device (PlanTarget::from_properties), so that plans can be checked for that GPU where it is not. No test
// itself. cudnn_device_json FILE DESCRIPTION: the same from a description in a file, which needs no GPU.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "kernels/conv2d/cudnn_descriptor.h"

namespace simclr {
namespace {

cudnn::Descriptor device_here() {
  cudnn::Descriptor device(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  device.set(CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, int32_t{0}).finalize("asking for GPU 0");
  return device;
}

cudnn::Descriptor device_described(const char* path) {
  std::ifstream file(path);
  if (!file) fail(ExitCode::kData, "cannot read {}", path);
  const std::string json{std::istreambuf_iterator<char>(file), {}};
  cudnn::Descriptor device(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  device
      .set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
           std::span<const char>(json.c_str(), json.size() + 1))
      .finalize("describing a device");
  return device;
}

void write_json(const char* path, const cudnn::Descriptor& device) {
  constexpr int64_t kRoom = 1 << 16;
  const auto text = device.read<char>(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, kRoom);
  std::string json(text.begin(), text.end());
  json.resize(json.find_last_not_of(std::string("\0\n", 2)) + 1);
  if (json.empty() || json.front() != '{') fail(ExitCode::kDevice, "cuDNN's description of the GPU is '{}'", json);
  std::ofstream file(path);
  file << json << '\n';
  if (!file.flush()) fail(ExitCode::kOutput, "cannot write {}", path);
}

int run(std::span<char*> arguments) {
  if (arguments.size() != 2 && arguments.size() != 3) {
    fmt::print(stderr, "usage: cudnn_device_json FILE [DESCRIPTION]\n");
    return static_cast<int>(ExitCode::kUsage);
  }
  try {
    write_json(arguments[1], arguments.size() == 3 ? device_described(arguments[2]) : device_here());
  } catch (const Error& e) {
    fmt::print(stderr, "cudnn_device_json: {}\n", e.what());
    return static_cast<int>(e.code());
  }
  return 0;
}

}  // namespace
}  // namespace simclr

int main(int argc, char** argv) {
  return simclr::run(std::span(argv, argc));
}
