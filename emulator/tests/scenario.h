// A scenario is a small CUDA program with one mistake, or one that asks for its surroundings. It runs as a process of
// its own, since the environment chooses the emulator's ways and many mistakes end the process. scenarios.cpp has them.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace simclr::test {

struct Outcome {
  int exit_code = -1;  // or
  int signal = 0;      // what ended it
  std::string output;  // stdout and stderr
  bool ended_well() const { return exit_code == 0; }
  bool says(const std::string& text) const { return output.find(text) != std::string::npos; }
};

// EMULATOR_* that are not given here are unset, whatever this process runs with.
Outcome run_scenario(const std::string& name, const std::vector<std::pair<std::string, std::string>>& environment = {});

}  // namespace simclr::test
