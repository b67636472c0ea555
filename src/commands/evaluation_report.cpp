#include "src/commands/evaluation_report.h"

#include "kernels/common/numbers.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace simclr {
namespace {

using Json = nlohmann::ordered_json;  // fields in the order written

constexpr size_t kMostClassesShown = 20;  // as a matrix; of more classes the most frequent mistakes are listed
constexpr size_t kMostMistakes = 10;

std::string describe_knn(const EvaluationReport& r) {
  std::string text =
      fmt::format("k-NN: cosine, votes weighted with temperature {}\n       k   top-1   top-5\n", r.knn_temperature);
  for (size_t i = 0; i < r.knn.size(); ++i) {
    text += fmt::format("{:>8}  {:.4f}  {:.4f}", r.knn[i].k, r.knn[i].top1(), r.knn[i].top5());
    if (r.knn[i].k < r.wanted_k[i]) text += fmt::format("   (instead of {}: no more images)", r.wanted_k[i]);
    text += '\n';
  }
  return text;
}

std::string describe_probes(const EvaluationReport& r) {
  std::string text = fmt::format(
      "linear probe: logistic regression on the features as they are, until no gradient is above {:g}\n"
      "  labels  images        C   top-1   top-5  iterations  gradient\n",
      r.tolerance);
  for (const ProbeReport& p : r.probes) {
    text += fmt::format("{:>6g} %  {:>8}  {:>7g}  {:.4f}  {:.4f}  {:>10}  {:>8.1e}{}\n", p.percent, p.images,
                        p.solution.c, p.scores.top1(), p.scores.top5(), p.solution.solver.iterations,
                        p.solution.solver.gradient, p.solution.solver.converged ? "" : "   NOT CONVERGED");
  }
  return text;
}

// Names of the columns, which have four characters: if the first four of the names do not
// distinguish two classes, as with n03028079 and n03000684, they are numbers, which the rows then have too.
struct MatrixNames {
  std::vector<std::string> rows, columns;
};

MatrixNames matrix_names(const std::vector<std::string>& classes) {
  MatrixNames names{.rows = classes, .columns = {}};
  for (const auto& name : classes) names.columns.push_back(fmt::format("{:.4}", name));
  if (std::set<std::string>(names.columns.begin(), names.columns.end()).size() == classes.size()) return names;
  for (size_t i = 0; i < classes.size(); ++i) {
    names.columns[i] = std::to_string(i);
    names.rows[i] = fmt::format("{:>2} {}", i, classes[i]);
  }
  return names;
}

// Rows of the confusion matrix in per cent of the true class's images.
std::string describe_matrix(const EvaluationReport& r, const ProbeScores& scores) {
  const size_t classes = r.classes.size();
  const MatrixNames names = matrix_names(r.classes);
  size_t width = 5;
  for (const auto& name : names.rows) width = std::max(width, std::min<size_t>(name.size(), 19));
  std::string text = fmt::format("  {:>{}} ", "", width);
  for (const auto& name : names.columns) text += fmt::format(" {:>4}", name);
  text += '\n';
  for (size_t t = 0; t < classes; ++t) {
    int64_t all = 0;
    for (size_t p = 0; p < classes; ++p) all += scores.confusion[t * classes + p];
    text += fmt::format("  {:>{}.19} ", names.rows[t], width);
    for (size_t p = 0; p < classes; ++p) {
      const int64_t count = scores.confusion[t * classes + p];
      text += count == 0 ? "    ." : fmt::format(" {:>4.0f}", 100.0 * as_double(count) / as_double(all));
    }
    text += '\n';
  }
  return text;
}

std::string describe_mistakes(const EvaluationReport& r, const ProbeScores& scores) {
  const size_t classes = r.classes.size();
  std::vector<size_t> order;
  for (size_t i = 0; i < scores.confusion.size(); ++i)
    if (i / classes != i % classes && scores.confusion[i] > 0) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores.confusion[a] > scores.confusion[b]; });
  order.resize(std::min(order.size(), kMostMistakes));
  std::string text;
  for (const size_t i : order)
    text +=
        fmt::format("  {:>6}  {} taken for {}\n", scores.confusion[i], r.classes[i / classes], r.classes[i % classes]);
  return text;
}

Json as_json(const KnnResult& k) {
  return {{"k", k.k},
          {"top1", k.top1()},
          {"top5", k.top5()},
          {"top1_correct", k.top1_correct},
          {"top5_correct", k.top5_correct}};
}

Json as_json(const ProbeReport& p, size_t classes) {
  Json tried = Json::array(), confusion = Json::array();
  for (const auto& [c, loss, top1] : p.chosen.tried)
    tried.push_back({{"c", c}, {"held_out_loss", loss}, {"held_out_top1", top1}});
  for (size_t t = 0; t < classes; ++t) {
    const auto row = p.scores.confusion.begin() + t * classes;
    confusion.push_back(std::vector<int64_t>(row, row + classes));
  }
  return {{"labels_percent", p.percent},
          {"images", p.images},
          {"c", p.solution.c},
          {"c_tried", tried},
          {"top1", p.scores.top1()},
          {"top5", p.scores.top5()},
          {"top1_correct", p.scores.top1_correct},
          {"top5_correct", p.scores.top5_correct},
          {"iterations", p.solution.solver.iterations},
          {"converged", p.solution.solver.converged},
          {"gradient", p.solution.solver.gradient},
          {"objective", p.solution.solver.value},
          {"confusion", confusion}};
}

}  // namespace

std::string describe(const EvaluationReport& r) {
  std::string text = fmt::format(
      "checkpoint: {}, step {}, epoch {}\ndata: {}, {} train images for the classifiers, {} test images asked, {} "
      "classes; {} features\n\n",
      r.checkpoint, r.step, r.epoch, r.data, r.bank, r.queries, r.classes.size(), r.features);
  text += describe_knn(r);
  if (r.probes.empty()) return text;
  text += '\n' + describe_probes(r);
  const ProbeReport& last = r.probes.back();
  const bool matrix = r.classes.size() <= kMostClassesShown;
  text += fmt::format("\n{} of the probe with {:g} % of the labels{}\n", matrix ? "confusion" : "commonest mistakes",
                      last.percent,
                      matrix ? ": a row for each true class, % of its images" : " (--json has the whole matrix)");
  return text + (matrix ? describe_matrix(r, last.scores) : describe_mistakes(r, last.scores));
}

std::string describe_as_json(const EvaluationReport& r) {
  Json json = {{"checkpoint", r.checkpoint},
               {"step", r.step},
               {"epoch", r.epoch},
               {"data", r.data},
               {"train_images", r.bank},
               {"test_images", r.queries},
               {"features", r.features},
               {"classes", r.classes},
               {"knn_temperature", r.knn_temperature}};
  json["knn"] = Json::array();
  for (const KnnResult& k : r.knn) json["knn"].push_back(as_json(k));
  json["linear_probe"] = Json::array();
  for (const ProbeReport& p : r.probes) json["linear_probe"].push_back(as_json(p, r.classes.size()));
  // Names of classes come from folders and may be any bytes.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace simclr
