// Curves, features, and the page as text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "src/report/features.h"
#include "src/report/history.h"
#include "src/report/html.h"
#include "src/report/page.h"
#include "src/report/svg.h"

namespace simclr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(Curve, KeepsEachPointUntilThereAreTooMany) {
  Curve curve;
  for (int i = 1; i <= 600; ++i) curve.add(i, 10.0 * i);
  EXPECT_EQ(curve.points().size(), 600U);
  curve.add(601, 6010);
  const auto points = curve.points();
  ASSERT_EQ(points.size(), 301U);
  EXPECT_EQ(points[0].step, 1.5);
  EXPECT_EQ(points[299].value, 5995);
  EXPECT_EQ(points[300].value, 6010);
  curve.add(602, 6020);
  EXPECT_EQ(curve.points().size(), 301U) << "two values a point now";
  for (int i = 603; i <= 100000; ++i) curve.add(i, 1);
  EXPECT_LE(curve.points().size(), 600U);
  EXPECT_EQ(curve.values(), 100000);
}

TEST(RunHistory, ReadsLinesAndLeavesOutWhatIsNone) {
  RunHistory history(100);
  EXPECT_TRUE(history.add_line(R"({"step":3,"epoch":0,"loss":2.5,"images_per_s":50,"data_wait_s":0.5,"note":"x"})"));
  EXPECT_TRUE(history.add_line(R"({"step":4,"epoch":0,"loss":null,"loss_text":"nan"})"));
  EXPECT_FALSE(history.add_line(R"({"step":5,"lo)"));
  EXPECT_FALSE(history.add_line(R"({"loss":5})"));
  EXPECT_EQ(history.curves().at("loss").values(), 1);
  EXPECT_EQ(history.curves().at("wait_share").last(), 0.25);  // a step takes 2 s
  EXPECT_FALSE(history.curves().contains("note"));
}

TEST(NearestRows, ByProductThenByNumber) {
  const std::vector<float> bank = {0, 1, 1, 0, 0.6F, 0.8F, 1, 0}, queries = {1, 0};
  const auto found = nearest_rows({bank.data(), 4, 2, 2}, {queries.data(), 1, 2, 2}, 0, 3);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].row, 1);
  EXPECT_EQ(found[1].row, 3);
  EXPECT_EQ(found[2].row, 2);
  EXPECT_FLOAT_EQ(static_cast<float>(found[2].cosine), 0.6F);
}

TEST(PrincipalPlane, FindsTheAxesOfAnEllipse) {
  // 3 cos t along (0.6, 0.8, 0), sin t along (0, 0, 1), around (5, 5, 5): variances 4.5 and 0.5.
  std::vector<float> rows;
  std::vector<int64_t> all;
  for (int i = 0; i < 64; ++i) {
    const double t = 2 * M_PI * i / 64, a = 3 * std::cos(t);
    for (const double v : {5 + 0.6 * a, 5 + 0.8 * a, 5 + std::sin(t)}) rows.push_back(static_cast<float>(v));
    all.push_back(i);
  }
  const PlaneMap map = principal_plane({rows.data(), 64, 3, 3}, all);
  EXPECT_NEAR(map.explained[0], 0.9, 1e-6);
  EXPECT_NEAR(map.explained[1], 0.1, 1e-6);
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_NEAR(map.points[i][0], 3 * std::cos(2 * M_PI * static_cast<double>(i) / 64), 1e-5);
    EXPECT_NEAR(map.points[i][1], std::sin(2 * M_PI * static_cast<double>(i) / 64), 1e-5);
  }
}

TEST(PrincipalPlane, OfEqualRowsIsAPoint) {
  const std::vector<float> rows = {1, 2, 1, 2};
  const PlaneMap map = principal_plane({rows.data(), 2, 2, 2}, {0, 1});
  EXPECT_EQ(map.points[1][0], 0);
  EXPECT_EQ(map.explained[0], 0);
}

TEST(Html, EscapesAndRepairs) {
  EXPECT_EQ(escape_html("<a href=\"x\">&'\t\x7f"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;  ");
  EXPECT_EQ(escape_html("\xC3\xBC\xE2\x9C\x93"), "\xC3\xBC\xE2\x9C\x93");
  EXPECT_EQ(escape_html("\xFFz\xC3"), "\xEF\xBF\xBDz\xEF\xBF\xBD");
  EXPECT_EQ(escape_html("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD") << "a surrogate";
}

TEST(Html, Base64ByRfc4648) {
  for (const auto& [text, code] : std::vector<std::pair<std::string, std::string>>{
           {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"\xFF\xFE", "//4="}})
    EXPECT_EQ(base64(text), code);
}

TEST(Svg, TicksAreRound) {
  EXPECT_THAT(round_ticks(0, 1, 4), ElementsAre(0, 0.5, 1));
  EXPECT_THAT(round_ticks(3, 17, 4), ElementsAre(5, 10, 15));
  EXPECT_THAT(round_ticks(-4, 4, 4), ElementsAre(-4, -2, 0, 2, 4));
}

TEST(Svg, OneValueHasAChart) {
  const std::string svg = line_chart("t<", {{"a", {{5, 2}}}});
  EXPECT_THAT(svg, HasSubstr("aria-label=\"t&lt;\""));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(Page, ShowsTheRunAndEscapesWhatComesFromOutside) {
  RunHistory history(10);
  history.add_line(R"({"step":1,"loss":2,"<script>":3})");
  const std::string html = render({.name = "<!--part pairs-->&",
                                   .state = "stopped: <x>",
                                   .step = 1,
                                   .total_steps = 0,
                                   .time = "now",
                                   .history = history,
                                   .config_yaml = "name: \"</pre>\"",
                                   .parts = {}});
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("<x>")));
  EXPECT_THAT(html, HasSubstr("&lt;/pre&gt;"));
  EXPECT_EQ(parts_of(html).pairs, "");
}

TEST(Page, ItsPartsAreFoundAgain) {
  const RunHistory history(10);
  const ReportParts parts{.facts = facts_part({"program 1", "data: a: <b>"}), .pairs = "P", .evaluation = "E"};
  const std::string html = render({.name = "n",
                                   .state = "s",
                                   .step = 0,
                                   .total_steps = 5,
                                   .time = "",
                                   .history = history,
                                   .config_yaml = "",
                                   .parts = parts});
  const ReportParts found = parts_of(html);
  EXPECT_EQ(found.facts, parts.facts);
  EXPECT_EQ(found.pairs, "P");
  EXPECT_EQ(found.evaluation, "E");
  EXPECT_THAT(html, HasSubstr("No steps logged yet"));
  EXPECT_THAT(parts.facts, HasSubstr("<th scope=\"row\">data</th><td>a: &lt;b&gt;</td>"));
}

}  // namespace
}  // namespace simclr
