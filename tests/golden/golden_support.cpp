#include "tests/golden/golden_support.h"

#include <zlib.h>

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace simclr::test {
namespace {

nlohmann::json read_cases(const std::string& name) {
  const char* folder = std::getenv("SIMCLR_GOLDEN");
  const std::string path = std::string(folder != nullptr ? folder : SIMCLR_GOLDEN_FOLDER) + "/" + name;  // of CMake
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  std::string text, block(1 << 16, '\0');
  int bytes = file ? 1 : -1;
  while (bytes > 0) {
    bytes = gzread(file.get(), block.data(), static_cast<unsigned>(block.size()));
    if (bytes > 0) text.append(block, 0, bytes);
  }
  if (bytes < 0) throw std::runtime_error("cannot read " + path);
  return nlohmann::json::parse(text);
}

// [[row], ...] of the two views, one after the other
std::vector<double> rows_of(const nlohmann::json& view1, const nlohmann::json& view2) {
  std::vector<double> rows;
  for (const auto* view : {&view1, &view2}) {
    for (const auto& row : *view) {
      for (const auto& number : row) rows.push_back(number);
    }
  }
  return rows;
}

}  // namespace

std::vector<GoldenInfoNce> golden_infonce() {
  std::vector<GoldenInfoNce> cases;
  for (const auto& c : read_cases("infonce.json.gz"))
    cases.push_back({.batch = c.at("n"),
                     .columns = c.at("c"),
                     .temperature = c.at("temperature"),
                     .margin = c.at("margin"),
                     .loss = c.at("loss"),
                     .z = rows_of(c.at("z1"), c.at("z2")),
                     .grad_z = rows_of(c.at("grad_z1"), c.at("grad_z2"))});
  return cases;
}

std::vector<GoldenBarlowTwins> golden_barlow_twins() {
  std::vector<GoldenBarlowTwins> cases;
  for (const auto& c : read_cases("barlow.json.gz"))
    cases.push_back({.batch = c.at("n"),
                     .columns = c.at("c"),
                     .lambda = c.at("lam"),
                     .eps = c.at("eps"),
                     .loss = c.at("loss"),
                     .z = rows_of(c.at("z1"), c.at("z2")),
                     .grad_z = rows_of(c.at("grad_z1"), c.at("grad_z2"))});
  return cases;
}

std::vector<GoldenBatchNorm> golden_batch_norm() {
  std::vector<GoldenBatchNorm> cases;
  for (const auto& c : read_cases("batchnorm.json.gz")) {
    const auto& shape = c.at("shape");
    cases.push_back({.samples = shape.at(0),
                     .channels = shape.at(1),
                     .height = shape.at(2),
                     .width = shape.at(3),
                     .eps = c.at("eps"),
                     .momentum = c.at("momentum"),
                     .x = c.at("x"),
                     .grad_y = c.at("dy"),
                     .gamma = c.at("gamma"),
                     .beta = c.at("beta"),
                     .y = c.at("y"),
                     .grad_x = c.at("dx"),
                     .grad_gamma = c.at("dgamma"),
                     .grad_beta = c.at("dbeta"),
                     .running_mean = c.at("running_mean"),
                     .running_var = c.at("running_var")});
  }
  return cases;
}

}  // namespace simclr::test
