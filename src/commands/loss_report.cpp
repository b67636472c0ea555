#include "src/commands/loss_report.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "kernels/common/error.h"
#include "kernels/common/numbers.h"
#include "src/config/config_errors.h"

namespace simclr {
namespace {

// A balanced tree over the terms: its error grows with the logarithm of their number.
template <typename Term>
double sum_of(int64_t begin, int64_t end, const Term& term) {
  if (end - begin == 1) return term(begin);
  const int64_t middle = begin + (end - begin) / 2;
  return sum_of(begin, middle, term) + sum_of(middle, end, term);
}

// f(number) for the numbers of one view, row by row.
template <typename T, typename F>
void for_each_number(std::span<const T> grad_z, int view, const ViewPair& views, F&& f) {
  for (int64_t image = 0; image < views.images(); ++image) {
    for (int64_t c = 0; c < views.columns(); ++c) f(as_double(grad_z[(2 * image + view) * views.columns() + c]));
  }
}

}  // namespace

double mean_of(std::span<const double> losses) {
  const int64_t count = std::ssize(losses);
  return sum_of(0, count, [&](int64_t k) { return losses[k]; }) / as_double(count);
}

// Scaled by the largest, so that no square overflows or vanishes.
template <typename T>
double gradient_norm(std::span<const T> grad_z, int view, const ViewPair& views) {
  double largest = 0;
  for_each_number(grad_z, view, views, [&](double x) { largest = std::max(largest, std::abs(x)); });
  if (largest == 0) return 0;
  const int64_t columns = views.columns();
  return largest * std::sqrt(sum_of(0, views.images(), [&](int64_t image) {
           const T* row = &grad_z[(2 * image + view) * columns];
           return sum_of(0, columns, [&](int64_t c) {
             const double x = as_double(row[c]) / largest;
             return x * x;
           });
         }));
}

template <typename T>
std::vector<std::byte> gradient_bytes(std::span<const T> grad_z, int view, const ViewPair& views) {
  std::vector<std::byte> bytes(views.views[view].header.data_bytes());
  size_t at = 0;
  const auto put = [&](auto number) {
    std::memcpy(&bytes[at], &number, sizeof number);
    at += sizeof number;
  };
  for_each_number(grad_z, view, views, [&](double x) {
    if (!std::isfinite(x))
      fail(ExitCode::kDiverged, "the gradient is not finite, although all inputs are; please report it");
    if (views.type() == NpyType::kFloat32)
      put(to_float(x));
    else
      put(x);
  });
  return bytes;
}

template double gradient_norm(std::span<const float>, int, const ViewPair&);
template double gradient_norm(std::span<const double>, int, const ViewPair&);
template std::vector<std::byte> gradient_bytes(std::span<const float>, int, const ViewPair&);
template std::vector<std::byte> gradient_bytes(std::span<const double>, int, const ViewPair&);

std::string describe(const LossCommand& command, const ViewPair& views, const CheckLossResult& result) {
  std::string text = fmt::format("loss: {}\n", result.loss);
  text += fmt::format("batch: {} images, 2 views, {} columns\n", views.images(), views.columns());
  text += fmt::format("positives per anchor: 1\nnegatives per anchor: {}\n", 2 * views.images() - 2);
  text += fmt::format("temperature: {}\nmargin: {}\ndecoupled: {}\n", command.settings.temperature,
                      command.settings.margin, command.settings.decoupled);
  text += fmt::format("precision: {} (the files hold {})\nranks: {}\n", result.precision, name_of(views.type()),
                      result.ranks);
  for (const int view : {0, 1}) {
    if (!command.has_gradient()) break;
    const std::string& path = command.gradients[view];
    text += fmt::format("norm of the gradient of view {}: {}{}\n", view + 1, result.grad_norms[view],
                        path.empty() ? "" : ", written to " + shown_path(path));
  }
  return text;
}

std::string describe_as_json(const LossCommand& command, const ViewPair& views, const CheckLossResult& result) {
  nlohmann::ordered_json json = {{"loss", result.loss},
                                 {"batch", views.images()},
                                 {"views", 2},
                                 {"columns", views.columns()},
                                 {"positives_per_anchor", 1},
                                 {"negatives_per_anchor", 2 * views.images() - 2},
                                 {"temperature", command.settings.temperature},
                                 {"margin", command.settings.margin},
                                 {"decoupled", command.settings.decoupled},
                                 {"precision", result.precision},
                                 {"file_type", name_of(views.type())},
                                 {"ranks", result.ranks}};
  if (command.has_gradient()) json["gradient_norms"] = {result.grad_norms[0], result.grad_norms[1]};
  return json.dump() + "\n";
}

}  // namespace simclr
