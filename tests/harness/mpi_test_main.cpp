#include "tests/harness/mpi_test_main.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <memory>

#include "src/comm/make_collectives.h"

namespace simclr {
namespace {

constexpr unsigned kLimitSeconds = 90;
std::unique_ptr<MpiSession> session;

// Rank 0 prints as usual; the others only what failed.
class FailuresOnly : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.failed())
      std::fprintf(stderr, "rank %d: %s:%d: %s\n", session->rank(), result.file_name(), result.line_number(),
                   result.message());
  }
};

int run(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  session = std::make_unique<MpiSession>();
  ::alarm(kLimitSeconds);  // SIGALRM ends a rank that hangs, and mpirun ends the others
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (session->rank() != 0) {
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailuresOnly);
  }
  const int failed = RUN_ALL_TESTS();
  const auto collectives = make_collectives(*session, Reduction::kFastest, nullptr);
  float failures[1] = {static_cast<float>(failed != 0)};
  collectives->ordered_sum(std::span(failures));
  session->finish();
  return failures[0] > 0 ? 1 : 0;
}

}  // namespace

MpiSession& test_session() {
  return *session;
}

}  // namespace simclr

int main(int argc, char** argv) {
  try {
    return simclr::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
