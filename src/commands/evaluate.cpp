#include "src/commands/evaluate.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "src/base/file.h"
#include "src/base/log.h"
#include "src/base/print.h"
#include "src/comm/agreement.h"
#include "src/commands/evaluation_report.h"
#include "src/commands/part_progress.h"
#include "src/commands/trained_encoder.h"
#include "src/config/enum_names.h"
#include "src/evaluate/label_subset.h"
#include "src/train/knn_evaluation.h"

namespace simclr {
namespace {

constexpr LbfgsOptions kSolver = {.tolerance = 1e-6, .most_iterations = 5000};
constexpr double kUsualC = 1;  // scikit-learn's default, where no labels can be held out

// A split with its labels and features.
struct Encoded {
  std::unique_ptr<Dataset> dataset;
  std::vector<int32_t> labels;
  FeatureMatrix features;

  ProbeData view() const { return {features.view, labels}; }
};

// A split without features yet.
Encoded with_labels(std::unique_ptr<Dataset> dataset, const std::string& name) {
  if (dataset->count() == 0)
    throw AgreedError(
        ExitCode::kData,
        fmt::format("the data set has no {} images; give one that has, e.g. --set data.path=DIR with DIR/train "
                    "and DIR/val",
                    name));
  if (!dataset->has_labels())
    throw AgreedError(
        ExitCode::kData,
        fmt::format("the {} images have no labels, which evaluate requires; give a data set with labels, e.g. "
                    "--set data.path=DIR",
                    name));
  std::vector<int32_t> labels = labels_of(*dataset);
  return {.dataset = std::move(dataset), .labels = std::move(labels), .features = {}};
}

// Rows of an encoded split.
struct Selected {
  std::vector<float> values;
  std::vector<int32_t> labels;
  int64_t width = 0;

  ProbeData view() const { return {{values.data(), std::ssize(labels), width, width}, labels}; }
};

Selected select(const ProbeData& from, const std::vector<int64_t>& rows) {
  Selected selected{.values = {}, .labels = {}, .width = from.features.cols};
  selected.values.reserve(rows.size() * selected.width);
  for (const int64_t row : rows) {
    selected.values.insert(selected.values.end(), from.features.row(row), from.features.row(row) + selected.width);
    selected.labels.push_back(from.labels[row]);
  }
  return selected;
}

FeatureMatrix normalized(const CpuExec& exec, const FeatureMatrix& features) {
  FeatureMatrix copy{Buffer(features.memory.bytes()), features.view};
  copy.view.data = copy.memory.as<float>().data();
  std::copy_n(features.view.data, features.view.elements(), copy.view.data);
  normalize_features(exec, copy.view);
  return copy;
}

class Evaluation {
 public:
  Evaluation(const EvaluateCommand& command, TrainedEncoder& encoder)
      : command_(command), encoder_(encoder), exec_{.threads = encoder.context().context.threads()} {}

  EvaluationReport run() {
    bank_ = with_labels(encoder_.open_bank(), "train");
    queries_ = with_labels(encoder_.open(Split::kTest), "test");
    const int64_t classes = std::ssize(bank_.dataset->class_names());
    const int32_t highest = *std::max_element(queries_.labels.begin(), queries_.labels.end());
    if (highest >= classes)
      throw AgreedError(
          ExitCode::kData,
          fmt::format("the test images have a class that is not among the {} of the train images: {}; give "
                      "both splits the same classes",
                      classes, queries_.dataset->class_names()[highest]));
    bank_.features = features_of(bank_, "train");
    queries_.features = features_of(queries_, "test");
    EvaluationReport report{.checkpoint = encoder_.checkpoint(),
                            .step = encoder_.header().step,
                            .epoch = encoder_.header().epoch,
                            .data = std::string(enum_name(encoder_.settings().data.format)),
                            .bank = bank_.features.view.rows,
                            .queries = queries_.features.view.rows,
                            .features = bank_.features.view.cols,
                            .classes = bank_.dataset->class_names(),
                            .knn_temperature = encoder_.settings().evaluate.knn.temperature,
                            .wanted_k = command_.k,
                            .knn = {},
                            .tolerance = kSolver.tolerance,
                            .probes = {}};
    report.knn = knn(report.knn_temperature);
    LinearProbe probe(exec_, encoder_.context().host, classes, encoder_.beat());
    for (const double percent : command_.percent)
      if (percent > 0) report.probes.push_back(probe_on(percent, probe));
    return report;
  }

 private:
  FeatureMatrix features_of(const Encoded& split, const std::string& name) {
    return encoder_.encode(*split.dataset, EncoderOutput::kRepresentation, fmt::format("features of {} images", name));
  }

  std::vector<KnnResult> knn(double temperature) {
    const FeatureMatrix bank = normalized(exec_, bank_.features), queries = normalized(exec_, queries_.features);
    return evaluate_knn(exec_, encoder_.context().host, {bank.view, bank_.labels}, {queries.view, queries_.labels},
                        command_.k, temperature, encoder_.beat());
  }

  ProbeReport probe_on(double percent, LinearProbe& probe) {
    const uint64_t seed = encoder_.settings().run.seed;
    const auto rows = draw_label_subset(bank_.labels, percent, seed);
    PartProgress line(encoder_.is_first(), fmt::format("linear probe on {:g} % of the labels", percent));
    const auto progress = [&](double c) {
      return [&line, c](const LbfgsResult& so_far) {
        line.say(fmt::format("C = {:g}, iteration {}, gradient {:.1e}", c, so_far.iterations, so_far.gradient));
      };
    };
    ProbeReport report{.percent = percent, .images = std::ssize(rows), .chosen = {}, .solution = {}, .scores = {}};
    report.chosen.c = command_.c;
    if (command_.c == 0) {
      const HeldOutSplit split = hold_out(bank_.labels, rows, seed);
      if (split.held_out.empty())
        report.chosen.c = kUsualC;
      else
        report.chosen = choose_c(probe, select(bank_.view(), split.fit).view(),
                                 select(bank_.view(), split.held_out).view(), progress);
    }
    const Selected data = select(bank_.view(), rows);
    report.solution =
        probe.solve(data.view(), report.chosen.c, kSolver, report.chosen.weights, progress(report.chosen.c));
    report.scores = probe.score(report.solution, queries_.view());
    return report;
  }

  const EvaluateCommand& command_;
  TrainedEncoder& encoder_;
  const CpuExec exec_;
  Encoded bank_, queries_;
};

// The options that change what ranks compute. One mpirun may start ranks with different command lines.
std::string options_of(const EvaluateCommand& command) {
  return fmt::format("k {}, labels {}, c {}, batch {}", fmt::join(command.k, " "), fmt::join(command.percent, " "),
                     command.c, command.encoder.batch);
}

}  // namespace

void evaluate(const EvaluateCommand& command, Runtime& runtime) {
  require_equal(runtime.host(), ExitCode::kUsage, "the command line", options_of(command), "give all ranks the same");
  TrainedEncoder encoder(command.encoder, runtime);
  const EvaluationReport report = Evaluation(command, encoder).run();
  agree_on(encoder.context().host, [&] {
    if (!encoder.is_first()) return;
    print_out(describe(report));
    for (const ProbeReport& p : report.probes)
      if (!p.solution.solver.converged)
        log_warning(
            "the probe on {:g} % of the labels did not converge: gradient {:.1e} after {} iterations; use a smaller "
            "--c",
            p.percent, p.solution.solver.gradient, p.solution.solver.iterations);
    if (!command.json.empty()) write_file_durably(command.json, describe_as_json(report));
  });
}

}  // namespace simclr
