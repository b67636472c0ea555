// The values of reference/infonce.json in the folder that SIMCLR_SHARED names.
#pragma once

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/kernels/infonce/infonce_support.h"

namespace simclr::test {

struct StoredInfoNce {
  InfoNceProblem problem;       // one shard
  std::vector<double> z, grad;  // z and dL/dz [2B, C] in the global order
  double loss;
};

// Nothing when there is no such folder. Cases whose loss was below what its author's double could hold are left out.
inline std::vector<StoredInfoNce> stored_infonce() {
  const char* shared = std::getenv("SIMCLR_SHARED");
  if (shared == nullptr) return {};
  std::ifstream file(std::string(shared) + "/reference/infonce.json");
  EXPECT_TRUE(file) << "cannot read reference/infonce.json under SIMCLR_SHARED";
  const auto rows_of = [](const nlohmann::json& first, const nlohmann::json& second) {
    std::vector<double> out;
    for (const auto* view : {&first, &second}) {
      for (const auto& row : *view) {
        for (const auto& x : row) out.push_back(x.get<double>());
      }
    }
    return out;
  };
  std::vector<StoredInfoNce> cases;
  for (const auto& one : nlohmann::json::parse(file)) {
    if (one["loss"] == 0) continue;
    cases.push_back({problem(one["n"], 1, one["c"], one["temperature"], one["margin"]), rows_of(one["z1"], one["z2"]),
                     rows_of(one["grad_z1"], one["grad_z2"]), one["loss"]});
  }
  EXPECT_GE(cases.size(), 5U);
  return cases;
}

}  // namespace simclr::test
