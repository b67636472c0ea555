// Settings from the environment.
#include "emulator/settings.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/runtime.h"

namespace simclr::emulator {

namespace {

[[noreturn]] void refuse_setting(const char* name, const char* value) {
  complain("%s=%s is none of the values that it takes", name, value);
  std::_Exit(2);
}

template <typename T>
void choose(const char* name, const std::vector<std::pair<const char*, T>>& values, T& setting) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return;
  for (const auto& [word, value] : values) {
    if (std::strcmp(text, word) == 0) {
      setting = value;
      return;
    }
  }
  refuse_setting(name, text);
}

template <typename T>
void count(const char* name, unsigned long long least, unsigned long long most, unsigned long long unit, T& setting) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return;
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text, &end, 10);
  if (*end != '\0' || *text == '-' || value < least || value > most) refuse_setting(name, text);
  setting = static_cast<T>(value * unit);
}

// A variable that no setting reads is misspelt. The fakes' own begin with their names.
void refuse_unknown_variables() {
  constexpr std::string_view kKnown[] = {
      "ORDER=",     "STREAMS=",         "SEED=",  "PROTECT=", "LEAKS=", "DEVICES=", "RACE_BLOCKS=", "MEMORY_MIB=",
      "NO_DEVICE=", "MULTIPROCESSORS=", "FAULT=", "NCCL_",    "CUDNN_", "CUBLAS_"};
  constexpr std::string_view kPrefix = "EMULATOR_";
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (!text.starts_with(kPrefix)) continue;
    const std::string_view rest = text.substr(kPrefix.size());
    const auto is_start = [rest](std::string_view known) { return rest.starts_with(known); };
    if (std::any_of(std::begin(kKnown), std::end(kKnown), is_start)) continue;
    complain("%s: no such setting", *variable);
    std::_Exit(2);
  }
}

void read_fault(Settings& s) {
  const char* text = std::getenv("EMULATOR_FAULT");
  if (text == nullptr || *text == '\0') return;
  int end = 0;
  if (std::sscanf(text, "%d:%lld%n", &s.fault_device, &s.fault_kernel, &end) != 2 || text[end] != '\0' ||
      s.fault_device < 0 || s.fault_kernel < 1)
    refuse_setting("EMULATOR_FAULT", text);
}

Settings read_settings() {
  refuse_unknown_variables();
  Settings s;
  const std::vector<std::pair<const char*, bool>> switches{{"0", false}, {"1", true}};
  choose<Order>("EMULATOR_ORDER",
                {{"forward", Order::kForward}, {"reverse", Order::kReverse}, {"random", Order::kRandom}}, s.order);
  choose<Streams>("EMULATOR_STREAMS",
                  {{"eager", Streams::kEager}, {"lazy", Streams::kLazy}, {"random", Streams::kRandom}}, s.streams);
  choose<NoDevice>("EMULATOR_NO_DEVICE", {{"driver", NoDevice::kDriver}, {"device", NoDevice::kDevice}}, s.no_device);
  choose("EMULATOR_PROTECT", switches, s.protect);
  choose("EMULATOR_LEAKS", switches, s.leaks);
  choose("EMULATOR_RACE_BLOCKS", switches, s.race_blocks);
  read_fault(s);
  count("EMULATOR_SEED", 0, ~0ULL, 1, s.seed);
  count("EMULATOR_DEVICES", 1, 64, 1, s.devices);
  count("EMULATOR_MEMORY_MIB", 1, 1 << 20, 1 << 20, s.device_bytes);
  count("EMULATOR_MULTIPROCESSORS", 1, 1024, 1, s.multiprocessors);
  return s;
}

}  // namespace

const Settings& settings() {
  static const Settings read = read_settings();
  return read;
}

std::mt19937_64& random_engine() {
  static auto& engine = *new std::mt19937_64(settings().seed);
  return engine;
}

}  // namespace simclr::emulator
