#include "src/optim/optimizer.h"

#include <string_view>
#include <utility>

#include "kernels/common/numbers.h"
#include "kernels/common/views.h"
#include "kernels/optimizer_update/optimizer_update.h"
#include "kernels/squared_norm/squared_norm.h"
#include "src/optim/device_table.h"

namespace simclr {
namespace {

constexpr int64_t kAlignElements = kBufferAlignment / sizeof(float);

// One zero-filled buffer for one kind of state, with a tensor for each parameter.
class StateBuffer {
 public:
  StateBuffer(Context& context, const ParameterStore& store, std::string_view kind) : kind_(kind) {
    int64_t total = 0;
    for (const auto& p : store.parameters()) total += round_up(p.elements, kAlignElements);
    memory_ = context.allocate_elements<float>(total);
    float* next = memory_.as<float>().data();
    for (const auto& p : store.parameters()) {
      tensors_.push_back({"optimizer." + kind_ + "." + p.name, p.shape, next});
      next += round_up(p.elements, kAlignElements);
    }
  }
  const std::vector<OptimizerTensor>& tensors() const { return tensors_; }

 private:
  std::string kind_;
  Buffer memory_;
  std::vector<OptimizerTensor> tensors_;
};

std::vector<ParameterRun> make_runs(const ParameterStore& store, const OptimizerSettings& settings,
                                    const StateBuffer& first, const StateBuffer* second) {
  std::vector<ParameterRun> runs;
  for (const auto& p : store.parameters()) {
    const size_t i = runs.size();
    runs.push_back({.weight = p.value,
                    .grad = p.grad,
                    .first = first.tensors()[i].data,
                    .second = second ? second->tensors()[i].data : nullptr,
                    .elements = p.elements,
                    .decay = settings.decay_1d || !p.one_dimensional(),
                    .adapt = !p.one_dimensional()});
  }
  return runs;
}

// passes: how many reads and writes of an array of the weights' size an update takes.
ProfileSpan update_span(const Context& context, const std::vector<ParameterRun>& runs, int passes) {
  return {context.profiler(), {OpKind::kOptimizer, "optimizer", "update"}, [&] {
            int64_t elements = 0;
            for (const ParameterRun& run : runs) elements += run.elements;
            return Work{.bytes = passes * as_double(sizeof(float)) * as_double(elements)};
          }};
}

class Sgd final : public Optimizer {
 public:
  Sgd(Context& context, const ParameterStore& store, const OptimizerSettings& settings)
      : context_(context),
        settings_(settings),
        momentum_(context, store, "momentum"),
        runs_(context, make_runs(store, settings, momentum_, nullptr)) {}

  void update(int64_t, double learning_rate, const int* skip) override {
    const ProfileSpan span = update_span(context_, runs_.host(), 5);
    sgd_update(context_.exec(), {runs_.host(), runs_.device()},
               {.lr = to_float(learning_rate),
                .momentum = to_float(settings_.momentum),
                .weight_decay = to_float(settings_.weight_decay),
                .nesterov = settings_.nesterov},
               skip);
  }
  std::vector<OptimizerTensor> state() const override { return momentum_.tensors(); }

 private:
  Context& context_;
  OptimizerSettings settings_;
  StateBuffer momentum_;
  DeviceTable<ParameterRun> runs_;
};

class AdamW final : public Optimizer {
 public:
  AdamW(Context& context, const ParameterStore& store, const OptimizerSettings& settings)
      : context_(context),
        settings_(settings),
        average_(context, store, "exp_avg"),
        square_(context, store, "exp_avg_sq"),
        runs_(context, make_runs(store, settings, average_, &square_)) {}

  void update(int64_t step, double learning_rate, const int* skip) override {
    const ProfileSpan span = update_span(context_, runs_.host(), 7);
    adamw_update(context_.exec(), {runs_.host(), runs_.device()},
                 {.lr = to_float(learning_rate),
                  .beta1 = to_float(settings_.betas[0]),
                  .beta2 = to_float(settings_.betas[1]),
                  .eps = to_float(settings_.eps),
                  .weight_decay = to_float(settings_.weight_decay),
                  .t = step + 1},
                 skip);
  }
  std::vector<OptimizerTensor> state() const override {
    auto all = average_.tensors();
    all.insert(all.end(), square_.tensors().begin(), square_.tensors().end());
    return all;
  }

 private:
  Context& context_;
  OptimizerSettings settings_;
  StateBuffer average_, square_;
  DeviceTable<ParameterRun> runs_;
};

// The arrays whose norms LARS needs, in the order that its update expects: all weights, then all gradients plus decay.
std::vector<NormRun> make_norm_runs(const std::vector<ParameterRun>& runs, const OptimizerSettings& settings) {
  std::vector<NormRun> norms;
  for (const auto& r : runs) norms.push_back({.values = r.weight, .elements = r.elements});
  for (const auto& r : runs) {
    norms.push_back({.values = r.grad, .elements = r.elements});
    if (!r.decay) continue;
    norms.back().other = r.weight;
    norms.back().scale = to_float(settings.weight_decay);
  }
  return norms;
}

class Lars final : public Optimizer {
 public:
  Lars(Context& context, const ParameterStore& store, const OptimizerSettings& settings)
      : context_(context),
        settings_(settings),
        momentum_(context, store, "lars"),
        runs_(context, make_runs(store, settings, momentum_, nullptr)),
        norm_runs_(context, make_norm_runs(runs_.host(), settings)),
        squares_(context.allocate_elements<double>(norm_runs_.host().size())),
        rates_(context.allocate_elements<float>(runs_.host().size())) {
    context.reserve(squared_norms_scratch(norm_runs_.host()));
  }

  void update(int64_t, double learning_rate, const int* skip) override {
    const ProfileSpan span = update_span(context_, runs_.host(), 9);
    double* squares = squares_.as<double>().data();
    squared_norms(context_.exec(), {norm_runs_.host(), norm_runs_.device()}, squares);
    lars_update(context_.exec(), {runs_.host(), runs_.device()},
                {.lr = to_float(learning_rate),
                 .momentum = to_float(settings_.momentum),
                 .weight_decay = to_float(settings_.weight_decay),
                 .trust_coefficient = to_float(settings_.trust_coefficient)},
                squares, rates_.as<float>().data(), skip);
  }
  std::vector<OptimizerTensor> state() const override { return momentum_.tensors(); }

 private:
  Context& context_;
  OptimizerSettings settings_;
  StateBuffer momentum_;
  DeviceTable<ParameterRun> runs_;
  DeviceTable<NormRun> norm_runs_;
  Buffer squares_, rates_;  // [2, parameters], [parameters]
};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(Context& context, const ParameterStore& store,
                                          const OptimizerSettings& settings) {
  switch (settings.type) {
    case OptimizerType::kSgd:
      return std::make_unique<Sgd>(context, store, settings);
    case OptimizerType::kAdamW:
      return std::make_unique<AdamW>(context, store, settings);
    case OptimizerType::kLars:
      return std::make_unique<Lars>(context, store, settings);
  }
  fail(ExitCode::kOther, "internal error: unknown optimizer");
}

}  // namespace simclr
