// Ranks exchange d (the log-denominators) before backward, and losses and gradients for rank 0, which prints.
#include "src/commands/loss.h"

#include <cmath>
#include <new>
#include <type_traits>
#include <vector>

#include "kernels/common/numbers.h"
#include "src/base/print.h"
#include "src/base/sha256.h"
#include "src/base/version.h"
#include "src/check_loss/exact_infonce.h"
#include "src/check_loss/training_infonce.h"
#include "src/check_loss/views.h"
#include "src/comm/agreement.h"
#include "src/comm/topology.h"
#include "src/commands/loss_report.h"
#include "src/config/config_errors.h"

namespace simclr {
namespace {

// Time after which the watchdog names a rank that is gone or makes no progress. A rank does not beat while it computes,
// so the time grows with the work; 1 GFLOP/s is slower than any supported processor.
double time_limit_s(const ViewPair& views, int ranks) {
  const double rows = 2 * as_double(views.images());
  return 600 + 6 * rows * rows * as_double(views.columns()) / 1e9 / ranks;
}

// agree_on(), with what to do when memory runs out.
template <typename Work>
auto together(Collectives& collectives, Work&& work) {
  return agree_on(collectives, [&] {
    try {
      return work();
    } catch (const std::bad_alloc&) {
      fail(ExitCode::kDevice,
           "out of memory; the loss needs about 30 bytes per number in the two files on every rank, 50 with fp64; use "
           "a smaller "
           "batch or fewer ranks per host");
    }
  });
}

// Loss and gradient of all rows, the same on every rank. Image order (exact_infonce.h).
template <typename Loss>
class Computation {
 public:
  using T = typename Loss::Element;

  Computation(const ViewPair& views, const LossCommand& command, int threads, Collectives& collectives)
      : views_(views),
        command_(command),
        threads_(threads),
        collectives_(collectives),
        own_(images_of_rank(views.images(), collectives.rank(), collectives.size())) {}

  void run() {
    const int64_t rows = 2 * views_.images();
    std::vector<double> log_denominators;
    const auto loss = together(collectives_, [&] {
      losses_.resize(rows);
      log_denominators.resize(rows);
      if (command_.has_gradient()) grad_z_.resize(rows * views_.columns());
      auto made = std::make_unique<Loss>(views_, own_, command_.settings, threads_);
      made->forward(own_part(losses_), own_part(log_denominators));
      return made;
    });
    share(losses_);
    if (!command_.has_gradient()) return;
    share(log_denominators);
    together(collectives_, [&] { loss->backward(log_denominators, own_part(grad_z_)); });
    share(grad_z_);
  }

  // Prints the mean loss; writes the gradients.
  void report() const {
    CheckLossResult result{.loss = mean_of(losses_),
                           .precision = std::is_same_v<T, double> ? "fp64" : "fp32",
                           .ranks = collectives_.size()};
    if (!std::isfinite(result.loss))
      fail(ExitCode::kDiverged, "the loss is {}, although all inputs are finite; please report it", result.loss);
    for (const int view : {0, 1}) {
      if (!command_.has_gradient()) break;
      const std::span<const T> grad(grad_z_);
      result.grad_norms[view] = gradient_norm(grad, view, views_);
      const std::string& path = command_.gradients[view];
      if (!path.empty()) write_npy(path, views_.views[view].header, gradient_bytes(grad, view, views_));
    }
    print_out(command_.json ? describe_as_json(command_, views_, result) : describe(command_, views_, result));
  }

 private:
  // The part of a buffer that belongs to a range of images.
  template <typename Number>
  std::span<Number> part(std::vector<Number>& all, ImageRange range) const {
    const int64_t per_image = std::ssize(all) / views_.images();
    return std::span(all).subspan(range.first * per_image, range.count * per_image);
  }
  template <typename Number>
  std::span<Number> own_part(std::vector<Number>& all) const {
    return part(all, own_);
  }
  // Every rank's part to all others.
  template <typename Number>
  void share(std::vector<Number>& all) const {
    for (int rank = 0; rank < collectives_.size(); ++rank) {
      const std::span<Number> of_rank = part(all, images_of_rank(views_.images(), rank, collectives_.size()));
      if (!of_rank.empty()) collectives_.broadcast(of_rank, rank);
    }
  }

  const ViewPair& views_;
  const LossCommand& command_;
  const int threads_;
  Collectives& collectives_;
  const ImageRange own_;
  std::vector<double> losses_;  // [2N]
  std::vector<T> grad_z_;       // [2N, C]; empty unless a gradient is requested
};

template <typename Loss>
void compute_and_report(const ViewPair& views, const LossCommand& command, int threads, Collectives& collectives) {
  Computation<Loss> computation(views, command, threads, collectives);
  computation.run();
  together(collectives, [&] {
    if (collectives.rank() == 0) computation.report();
  });
}

// The options that change what ranks compute and send. One mpirun may start ranks with different command lines.
std::string options_of(const LossCommand& command) {
  return fmt::format("temperature {}, margin {}, decoupled {}, precision {}, gradient {}", command.settings.temperature,
                     command.settings.margin, command.settings.decoupled, static_cast<int>(command.precision),
                     command.has_gradient());
}

// The same files on every rank: on several hosts a path may lead to different ones.
void require_equal_views(const ViewPair& views, Collectives& collectives) {
  if (collectives.size() == 1) return;
  for (const int view : {0, 1}) {
    Sha256 hash;
    hash.update(views.views[view].data.data(), views.views[view].data.size());
    require_equal(collectives, ExitCode::kData, shown_path(views.paths[view].string()), hash.hex(),
                  "give every rank the same files");
  }
}

}  // namespace

void check_loss(const LossCommand& command, Runtime& runtime) {
  Collectives& collectives = runtime.host();
  require_equal(collectives, ExitCode::kDevice, "program version", kProgramVersion, "start one build on all hosts");
  require_equal(collectives, ExitCode::kUsage, "the command line", options_of(command), "give all ranks the same");
  runtime.discover_ranks();
  const Topology& topology = runtime.topology();
  const ViewPair views = together(collectives, [&] { return read_views(command.views[0], command.views[1]); });
  if (topology.size > 1 && topology.nodes == 1) runtime.watch_host(time_limit_s(views, topology.size), "");
  require_equal_views(views, collectives);
  const int threads = choose_threads(topology, command.threads);
  if (command.precision == LossPrecision::kFp64 ||
      (command.precision == LossPrecision::kAsFiles && views.type() == NpyType::kFloat64)) {
    compute_and_report<ExactInfoNce>(views, command, threads, collectives);
  } else {
    compute_and_report<TrainingInfoNce>(views, command, threads, collectives);
  }
}

}  // namespace simclr
