#include "src/optim/gradient_norm.h"

#include "kernels/common/numbers.h"

namespace simclr {
namespace {

std::vector<NormRun> gradients_of(const ParameterStore& store) {
  std::vector<NormRun> runs;
  for (const auto& p : store.parameters()) runs.push_back({.values = p.grad, .elements = p.elements});
  return runs;
}

}  // namespace

GradientNorm::GradientNorm(Context& context, const ParameterStore& store)
    : context_(context),
      runs_(context, gradients_of(store)),
      squares_(context.allocate_elements<double>(runs_.host().size())),
      total_(context.allocate_elements<double>(1)) {
  context.reserve(squared_norms_scratch(runs_.host()));
}

const double* GradientNorm::queue_square() {
  const ProfileSpan span(context_.profiler(), {OpKind::kOptimizer, "gradients", "norm"}, [&] {
    double bytes = 0;
    for (const NormRun& run : runs_.host()) bytes += sizeof(float) * as_double(run.elements);
    return Work{.bytes = bytes};
  });
  double *squares = squares_.as<double>().data(), *total = total_.as<double>().data();
  squared_norms(context_.exec(), {runs_.host(), runs_.device()}, squares);
  total_squared_norm(context_.exec(), squares, runs_.host().size(), total);
  return total;
}

}  // namespace simclr
