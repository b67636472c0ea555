// Truth from outside for Barlow Twins: losses and gradients in double that another program (numpy) made. Needs the
// folder of reference values: SIMCLR_SHARED=FOLDER, the file is FOLDER/reference/barlow.json.
#pragma once

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace simclr::test {

struct StoredBarlowTwins {
  int64_t batch, columns;
  double lambda, loss;
  std::vector<double> z, grad_z;  // [2B, C], global order
};

// None: SIMCLR_SHARED is not set. Fails the test when it is and the file cannot be read.
inline std::optional<std::vector<StoredBarlowTwins>> stored_barlow_twins() {
  const char* shared = std::getenv("SIMCLR_SHARED");
  if (shared == nullptr) return std::nullopt;
  std::vector<StoredBarlowTwins> cases;
  std::ifstream file(std::string(shared) + "/reference/barlow.json");
  EXPECT_TRUE(file) << "cannot read reference/barlow.json under SIMCLR_SHARED";
  if (!file) return cases;
  const auto rows_of = [](const nlohmann::json& first, const nlohmann::json& second) {
    std::vector<double> out;
    for (const auto* view : {&first, &second}) {
      for (const auto& row : *view) {
        for (const auto& x : row) out.push_back(x.get<double>());
      }
    }
    return out;
  };
  for (const auto& one : nlohmann::json::parse(file)) {
    EXPECT_EQ(one["eps"].get<double>(), 1e-5);
    cases.push_back({one["n"], one["c"], one["lam"], one["loss"], rows_of(one["z1"], one["z2"]),
                     rows_of(one["grad_z1"], one["grad_z2"])});
  }
  EXPECT_GE(cases.size(), 3U);
  return cases;
}

}  // namespace simclr::test
