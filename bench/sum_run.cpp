// What the link between the ranks of this machine does: the ordered sum of a buffer, MPI's own sum of it (whose order
// not guaranteed), and short messages. For scripts/step_table.py and scripts/scaling_model.py; prints one JSON object.
//   mpirun -np W sum_run ELEMENTS REPEATS               float32 elements, e.g. 11272192 of a ResNet-18
#include <cstdint>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/run_main.h"
#include "src/base/print.h"
#include "src/base/progress_line.h"
#include "src/comm/make_collectives.h"

namespace simclr {
namespace {

// Of one call each; the slowest rank's would be the same within microseconds: no rank leaves before all have entered.
template <typename F>
nlohmann::json seconds_of(Collectives& collectives, int repeats, F&& operation) {
  operation();  // first touch of pages and buffers
  nlohmann::json seconds = nlohmann::json::array();
  for (int repeat = 0; repeat < repeats; ++repeat) {
    collectives.barrier();
    const double start_s = monotonic_seconds();
    operation();
    seconds.push_back(monotonic_seconds() - start_s);
  }
  return seconds;
}

void run(int argc, char** argv) {
  if (argc != 3) fail(ExitCode::kUsage, "sum_run ELEMENTS REPEATS");
  const int64_t elements = std::stoll(argv[1]);
  const int repeats = std::stoi(argv[2]);
  MpiSession session;
  const auto ordered = make_collectives(session, Reduction::kOrdered, nullptr);
  const auto fastest = make_collectives(session, Reduction::kFastest, nullptr);
  std::vector<float> data(elements);
  std::vector<double> sums(2 * 256);  // of a batch norm with 256 channels
  // Zeros stay zeros however often they are summed.
  const auto sum = [&](Collectives& c) { return seconds_of(c, repeats, [&] { c.ordered_sum(std::span(data)); }); };
  nlohmann::json out;
  for (int round = 0; round < 2; ++round) {  // in turns: what slows the machine slows both
    for (const auto& s : sum(*ordered)) out["ordered_seconds"].push_back(s);
    for (const auto& s : sum(*fastest)) out["allreduce_seconds"].push_back(s);
  }
  out["short_seconds"] = seconds_of(*ordered, 100 * repeats, [&] { ordered->ordered_sum(std::span(sums)); });
  if (session.rank() == 0) print_out(out.dump() + "\n");
  session.finish();
}

}  // namespace
}  // namespace simclr

int main(int argc, char** argv) {
  return simclr::run_main(argc, argv, simclr::run);
}
