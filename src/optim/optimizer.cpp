#include "src/optim/optimizer.h"

#include <string_view>
#include <utility>

#include "kernels/common/views.h"
#include "kernels/optimizer_update/optimizer_update.h"

namespace simclr {
namespace {

constexpr int64_t kAlignElements = kBufferAlignment / sizeof(float);

// One buffer of zeros per kind of state, cut like the parameters.
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

// The parameters of the update, on the host and on the device.
class RunTable {
 public:
  RunTable(Context& context, std::vector<ParameterRun> runs) : runs_(std::move(runs)) {
    memory_ = context.allocate_elements<ParameterRun>(static_cast<int64_t>(runs_.size()));
    context.device().upload(memory_.data(), runs_.data(), memory_.bytes());
  }
  ParameterTable table() const { return {runs_, memory_.as<ParameterRun>().data()}; }

 private:
  std::vector<ParameterRun> runs_;
  Buffer memory_;
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
                    .decay = settings.decay_1d || !p.one_dimensional()});
  }
  return runs;
}

class Sgd final : public Optimizer {
 public:
  Sgd(Context& context, const ParameterStore& store, const OptimizerSettings& settings)
      : context_(context),
        settings_(settings),
        momentum_(context, store, "momentum"),
        runs_(context, make_runs(store, settings, momentum_, nullptr)) {}

  void update(int64_t, double learning_rate, const int* skip) override {
    sgd_update(context_.exec(), runs_.table(),
               {.lr = static_cast<float>(learning_rate),
                .momentum = static_cast<float>(settings_.momentum),
                .weight_decay = static_cast<float>(settings_.weight_decay),
                .nesterov = settings_.nesterov},
               skip);
  }
  std::vector<OptimizerTensor> state() const override { return momentum_.tensors(); }

 private:
  Context& context_;
  OptimizerSettings settings_;
  StateBuffer momentum_;
  RunTable runs_;
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
    adamw_update(context_.exec(), runs_.table(),
                 {.lr = static_cast<float>(learning_rate),
                  .beta1 = static_cast<float>(settings_.betas[0]),
                  .beta2 = static_cast<float>(settings_.betas[1]),
                  .eps = static_cast<float>(settings_.eps),
                  .weight_decay = static_cast<float>(settings_.weight_decay),
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
  RunTable runs_;
};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(Context& context, const ParameterStore& store,
                                          const OptimizerSettings& settings) {
  switch (settings.type) {
    case OptimizerType::kSgd:
      return std::make_unique<Sgd>(context, store, settings);
    case OptimizerType::kAdamW:
      return std::make_unique<AdamW>(context, store, settings);
  }
  fail(ExitCode::kOther, "internal error: unknown optimizer");
}

}  // namespace simclr
