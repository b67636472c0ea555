// The main() of the programs that print one measurement: an error is one line and exit code 1.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <exception>

namespace simclr {

template <typename Run>
int run_main(int argc, char** argv, const Run& run) {
  try {
    run(argc, argv);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}

}  // namespace simclr
