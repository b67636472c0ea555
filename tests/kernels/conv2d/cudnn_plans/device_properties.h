// Descriptions of GPUs in the form that cuDNN takes in place of a device (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION).
// The keys are those that cuDNN 9.19 asks for; they are not a documented format. Figures from the makers' data sheets, not
// read from a device. Test data only.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace simclr::test {

struct GpuModel {
  const char* name = "";
  int version = 0;  // compute capability, 900 for 9.0
  int multiprocessors = 0;
  int clock_khz = 0, memory_clock_khz = 0;
  int64_t l2_bytes = 0, memory_bytes = 0;
  int shared_optin_bytes = 0, blocks_per_multiprocessor = 0;
};

inline constexpr GpuModel kV100{"V100", 700, 80, 1'380'000, 877'000, 6 << 20, int64_t{16} << 30, 98'304, 32};
inline constexpr GpuModel kA100{"A100", 800, 108, 1'410'000, 1'593'000, 40 << 20, int64_t{80} << 30, 166'912, 32};
inline constexpr GpuModel kH100{"H100", 900, 132, 1'980'000, 2'619'000, 50 << 20, int64_t{80} << 30, 232'448, 32};

inline std::string properties_json(const GpuModel& g) {
  return fmt::format(
      R"({{"deviceName":"{}","deviceVer":{},"driverVer":13000,"cudaDeviceId":0,"pciDeviceId":0,)"
      R"("multiProcessorCount":{},"smClockRateKHz":{},"memClockRateKHz":{},"l2CacheSize":{},"totalGlobalMem":{},)"
      R"("maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":{},"reservedSharedMemoryPerBlock":1024,)"
      R"("regsPerBlock":65536,"maxRegistersPerSM":65536,"warpSize":32,"maxCtasPerSM":{},"maxThreadsPerBlock":1024,)"
      R"("maxThreadsPerSM":2048,"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],)"
      R"("isTccDriver":0,"supportCoopLaunch":1}})",
      g.name, g.version, g.multiprocessors, g.clock_khz, g.memory_clock_khz, g.l2_bytes, g.memory_bytes,
      g.shared_optin_bytes, g.blocks_per_multiprocessor);
}

}  // namespace simclr::test
