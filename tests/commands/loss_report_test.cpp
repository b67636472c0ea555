// The sums and texts that `loss` prints and writes.
#include "src/commands/loss_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/check_loss/check_loss_support.h"
#include "tests/checkpoint/checkpoint_support.h"

namespace simclr {
namespace {

using test::view_pair;
using testing::HasSubstr;

TEST(LossReport, SumsAndNorms) {
  EXPECT_EQ(mean_of(std::vector<double>{1, 2, 3, 6}), 3);
  std::vector<double> many(100000, 0.1);
  EXPECT_NEAR(mean_of(many), 0.1, 2e-17);  // added one after the other it would be off by 1e-13
  // Image order: image 0 view 1 is (3, 4), view 2 (1, 2); image 1 (0, 12), (2, 4).
  const ViewPair views = view_pair(std::vector<float>(8, 1.0F), 2);
  const std::vector<double> grad = {3, 4, 1, 2, 0, 12, 2, 4};
  EXPECT_EQ(gradient_norm(std::span<const double>(grad), 0, views), 13);
  EXPECT_EQ(gradient_norm(std::span<const double>(grad), 1, views), 5);
  std::vector<double> tiny = grad;
  for (double& x : tiny) x *= 0x1p-1000;
  EXPECT_EQ(gradient_norm(std::span<const double>(tiny), 0, views), 13 * 0x1p-1000);
}

TEST(LossReport, GradientsHaveTheTypeOfTheFiles) {
  const std::vector<double> grad = {3, 4, 1, 2, 0, 12, 2, 4};
  const ViewPair floats = view_pair(std::vector<float>(8, 1.0F), 2);
  const ViewPair doubles = view_pair(std::vector<double>(8, 1.0), 2);
  const auto as_text = [](const std::vector<std::byte>& bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  EXPECT_EQ(as_text(gradient_bytes(std::span<const double>(grad), 1, floats)),
            test::bytes_of(std::vector<float>{1, 2, 2, 4}));
  EXPECT_EQ(as_text(gradient_bytes(std::span<const double>(grad), 0, doubles)),
            test::bytes_of(std::vector<double>{3, 4, 0, 12}));
  std::vector<double> broken = grad;
  broken[7] = NAN;
  EXPECT_THAT(error_text([&] { gradient_bytes(std::span<const double>(broken), 1, doubles); }, ExitCode::kDiverged),
              HasSubstr("not finite"));
}

TEST(LossReport, ReportsThePairsOfAnAnchor) {
  LossCommand command{.views = {"a.npy", "b.npy"}, .gradients = {"g.npy", ""}, .settings = {.temperature = 0.1}};
  const ViewPair views = view_pair(std::vector<float>(12, 1.0F), 2);
  const CheckLossResult result{.loss = 0.1 + 0.2, .grad_norms = {1.5, 2.5}, .precision = "fp32", .ranks = 3};
  EXPECT_EQ(describe(command, views, result),
            "loss: 0.30000000000000004\nbatch: 3 images, 2 views, 2 columns\npositives per anchor: 1\n"
            "negatives per anchor: 4\ntemperature: 0.1\nmargin: 0\ndecoupled: false\n"
            "precision: fp32 (the files hold float32)\nranks: 3\n"
            "norm of the gradient of view 1: 1.5, written to g.npy\nnorm of the gradient of view 2: 2.5\n");
  EXPECT_EQ(describe_as_json(command, views, result),
            "{\"loss\":0.30000000000000004,\"batch\":3,\"views\":2,\"columns\":2,\"positives_per_anchor\":1,"
            "\"negatives_per_anchor\":4,\"temperature\":0.1,\"margin\":0.0,\"decoupled\":false,\"precision\":\"fp32\","
            "\"file_type\":\"float32\",\"ranks\":3,\"gradient_norms\":[1.5,2.5]}\n");
  command.gradients[0] = "";
  EXPECT_EQ(describe_as_json(command, views, result).find("gradient_norms"), std::string::npos);
}

}  // namespace
}  // namespace simclr
