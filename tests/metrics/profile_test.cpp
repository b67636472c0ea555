// What a profile makes of spans: own time without that of inner spans, medians over steps, sums, and a trace that JSON
// readers understand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "src/metrics/profile_trace.h"

namespace simclr {
namespace {

using testing::HasSubstr;

void wait_ms(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

const OpName kOuter{OpKind::kBatchNorm, "bn1", "forward"}, kInner{OpKind::kCollective, "collectives", "sum"};
const OpName kConvolution{OpKind::kConvolution, "conv1", "forward"};

// Three steps: a convolution of 20 ms, then a batch norm of 10 ms with a sum of 30 ms inside.
Profiler three_steps() {
  Profiler p;
  for (int step = 1; step <= 3; ++step) {
    p.begin_step(step);
    {
      const ProfileSpan span(&p, kConvolution, [] { return Work{.flops = 2e9, .bytes = 1e6}; });
      wait_ms(20);
    }
    {
      const ProfileSpan span(&p, kOuter, [] { return Work{.bytes = 5e6}; });
      wait_ms(10);
      const ProfileSpan inner(&p, kInner);
      wait_ms(30);
    }
    p.end_step();
  }
  return p;
}

const ProfileFacts kFacts{.rank = 1, .ranks = 2, .threads = 3, .peak = {.flops_per_s = 1e12, .bytes_per_s = 1e10}};

TEST(Profiler, CountsTheTimeOfASpanWithoutTheSpansInside) {
  const Profiler p = three_steps();
  ASSERT_EQ(p.rows().size(), 3U);
  EXPECT_EQ(p.rows()[0].layer, "conv1");
  EXPECT_EQ(p.rows()[2].op, "sum");
  for (size_t step = 0; step < 3; ++step) {
    double sum = 0;
    for (const auto& row : p.rows()) sum += row.seconds.at(step);
    const double whole = p.steps()[step].end_s - p.steps()[step].begin_s;
    EXPECT_LE(sum, whole);
    EXPECT_GT(sum, 0.9 * whole);  // what lies between the spans is microseconds, on a busy machine milliseconds
    EXPECT_GE(p.rows()[1].seconds[step], 0.010);
    EXPECT_GE(p.rows()[2].seconds[step], 0.030);
  }
}

TEST(Profiler, RecordsNothingOutsideStepsAndAsksForNoWorkThen) {
  Profiler p;
  bool asked = false;
  {
    const ProfileSpan span(&p, kOuter, [&] { return asked = true, Work{}; });
    const ProfileSpan unused(nullptr, kOuter, [&] { return asked = true, Work{}; });
  }
  EXPECT_FALSE(asked);
  EXPECT_TRUE(p.rows().empty() && p.spans().empty());
}

TEST(Profiler, GivesARowThatComesLateNoTimeInTheStepsBefore) {
  Profiler p;
  for (int step = 1; step <= 2; ++step) {
    p.begin_step(step);
    if (step == 2) const ProfileSpan span(&p, kInner);
    p.end_step();
  }
  ASSERT_EQ(p.rows().size(), 1U);
  ASSERT_EQ(p.rows()[0].seconds.size(), 2U);
  EXPECT_EQ(p.rows()[0].seconds[0], 0);
}

// The columns of the line that begins with `name`.
std::string line_of(const std::string& table, const std::string& name) {
  const size_t at = ("\n" + table).find("\n" + name + " ");
  return at == std::string::npos ? "" : table.substr(at, table.find('\n', at) - at);
}

TEST(ProfileTable, HasRowsRatesAndSums) {
  const std::string table = print_profile(three_steps(), kFacts);
  EXPECT_THAT(table, HasSubstr("profile of rank 1 of 2: the medians of steps 1 to 3, 3 threads"));
  EXPECT_THAT(line_of(table, "conv1"), HasSubstr("2.000"));  // GFLOP of one step, not of three
  EXPECT_THAT(line_of(table, "bn1"), HasSubstr("5.00"));     // MB
  // 2 GFLOP at 1000 GFLOP/s are 2 ms of 20 and some.
  const std::string share = line_of(table, "conv1");
  EXPECT_GE(std::stod(share.substr(share.rfind("  "))), 5);
  EXPECT_LE(std::stod(share.substr(share.rfind("  "))), 10);
  const std::string sums = table.substr(table.rfind("\n\n") + 2);
  const auto ms = [&](const std::string& name) { return std::stod(line_of(sums, name).substr(name.size())); };
  EXPECT_NEAR(ms("convolution") + ms("batch norm") + ms("collectives") + ms("between the rows"), ms("step"), 0.01);
  EXPECT_NEAR(ms("outside convolutions"), ms("step") - ms("convolution"), 0.01);
  // What all layers share stands behind them.
  EXPECT_LT(table.find("\nbn1 "), table.find("\ncollectives "));
}

TEST(ProfileTrace, IsJsonWithEverySpanInItsStep) {
  const auto trace = nlohmann::json::parse(print_trace(three_steps(), kFacts));
  EXPECT_DOUBLE_EQ(trace["otherData"]["peak_GFLOP_per_s"].get<double>(), 1000);
  std::vector<nlohmann::json> steps, spans;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    EXPECT_EQ(event["pid"], 1);
    (event["cat"] == "step" ? steps : spans).push_back(event);
  }
  ASSERT_EQ(steps.size(), 3U);
  ASSERT_EQ(spans.size(), 9U);
  EXPECT_EQ(steps[0]["ts"], 0);
  for (size_t i = 0; i < spans.size(); ++i) {
    const auto &step = steps[i / 3], &span = spans[i];
    EXPECT_GE(span["ts"].get<double>(), step["ts"].get<double>());
    EXPECT_LE(span["ts"].get<double>() + span["dur"].get<double>(),
              step["ts"].get<double>() + step["dur"].get<double>());
  }
  EXPECT_EQ(spans[0]["name"], "conv1 forward");
  EXPECT_EQ(spans[0]["args"]["GFLOP"], 2);
  EXPECT_LT(spans[1]["args"]["self_us"].get<double>(), spans[1]["dur"].get<double>() - 25e3);  // without the sum inside
}

}  // namespace
}  // namespace simclr
