// Runs the program emulator_scenarios.
#include "emulator/tests/scenario.h"

#include <sys/wait.h>

#include <array>
#include <cstdio>

namespace simclr::test {

Outcome run_scenario(const std::string& name, const std::vector<std::pair<std::string, std::string>>& environment) {
  std::string command = "env";
  for (const char* variable : {"ORDER", "SEED", "STREAMS", "PROTECT", "LEAKS", "DEVICES", "NO_DEVICE", "RACE_BLOCKS",
                               "MEMORY_MIB", "MULTIPROCESSORS"}) {
    command.append(" -u EMULATOR_").append(variable);
  }
  command +=
      " -u CUDA_VISIBLE_DEVICES TSAN_OPTIONS=atexit_sleep_ms=0";  // ThreadSanitizer sleeps for a second by default
  for (const auto& [variable, value] : environment) command.append(" ").append(variable).append("=").append(value);
  // exec: the process that is waited for is the program, not a shell.
  command = "exec " + command + " '" + EMULATOR_SCENARIOS + "' " + name + " 2>&1";

  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> part;
  while (const size_t bytes = fread(part.data(), 1, part.size(), pipe)) outcome.output.append(part.data(), bytes);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  return outcome;
}

}  // namespace simclr::test
