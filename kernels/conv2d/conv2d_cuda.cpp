// conv2d on cuDNN: NHWC, one library call per shard, so that the shape of a call, and with it every bit, is the same
// for any number of ranks. The plans are made at set-up (cudnn_graph.h); their workspace is part of exec's one arena.
#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "kernels/conv2d/conv2d_device.h"
#include "kernels/conv2d/cudnn_graph.h"
#include "kernels/conv2d/filter_layout.h"

namespace simclr::conv2d {
namespace {

constexpr std::string_view kBetweenChoices = "; ";

size_t round_up_256(int64_t bytes) {
  return round_up(bytes, 256);
}

// "a; b; c" in that order, each once; throws when there are more or fewer.
class Choices {
 public:
  explicit Choices(const std::string& text) : whole_(text), rest_(text) {}

  cudnn::ConvPlan make(const cudnn::PlanTarget& target, const cudnn::ConvRequest& request) {
    if (whole_.empty()) return cudnn::ConvPlan::choose(target, request);
    const size_t end = rest_.find(kBetweenChoices);
    const std::string name(rest_.substr(0, end));
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + kBetweenChoices.size());
    return cudnn::ConvPlan::from_name(target, request, name);
  }
  void expect_end() const {
    if (!rest_.empty()) fail(ExitCode::kDevice, "'{}' names more plans than the convolution has", whole_);
  }

 private:
  const std::string& whole_;
  std::string_view rest_;
};

class CudaConv2dPlan final : public Conv2dPlan {
 public:
  CudaConv2dPlan(const CudaExec& exec, const Conv2dParams& p, const std::string& choice)
      : Conv2dPlan(p),
        storage(exec.storage()),
        filter{.out = p.out_channels,
               .in = p.in_channels,
               .kernel = p.kernel,
               .out_stored = round_up(p.out_channels, channel_block()),
               .in_stored = p.input_is_images ? kCudaImageChannels : round_up(p.in_channels, channel_block())},
        handle_(exec.dnn),
        precision_(exec.precision) {
    SIMCLR_CHECK(!p.input_is_images || p.in_channels <= kCudaImageChannels, "images of {} channels", p.in_channels);
    const cudnn::PlanTarget target(exec.dnn);
    const cudnn::ConvShape shape{.samples = p.samples,
                                 .in_channels = filter.in_stored,
                                 .out_channels = filter.out_stored,
                                 .height = p.height,
                                 .width = p.width,
                                 .kernel = p.kernel,
                                 .stride = p.stride,
                                 .padding = p.padding};
    Choices choices(choice);
    for (const auto pass :
         {cudnn::ConvPass::kForward, cudnn::ConvPass::kBackwardData, cudnn::ConvPass::kBackwardFilter}) {
      if (p.input_is_images && pass == cudnn::ConvPass::kBackwardData) continue;
      const auto& plan = plans_[index_of(pass)].emplace(choices.make(target, {pass, exec.precision, shape}));
      library_bytes_ = std::max(library_bytes_, plan.workspace_bytes());
    }
    choices.expect_end();
  }

  const DataType storage;
  const FilterLayout filter;

  size_t x_shard_bytes() const {
    const auto& p = params();
    return p.samples * p.height * p.width * filter.in_stored * size_of(storage);
  }
  size_t y_shard_bytes() const {
    const auto& p = params();
    return p.samples * p.out_height() * p.out_width() * filter.out_stored * size_of(storage);
  }
  // Of one stored filter or gradient, as they stand side by side in the workspace.
  size_t filter_bytes() const { return round_up_256(filter.stored_elements() * size_of(storage)); }
  // The library's part of the workspace stands first, then `filters` stored filters.
  size_t library_bytes() const { return round_up_256(library_bytes_); }
  size_t workspace_bytes(int64_t filters) const { return library_bytes() + filter_bytes() * filters; }

  ScratchNeed scratch() const override {
    return {.workspace_bytes = workspace_bytes(params().shards), .thread_bytes = 0};
  }
  std::string describe() const override { return fmt::format("cuDNN {}: {}", cudnnGetVersion(), choice()); }
  std::string choice() const override {
    std::string text;
    for (const auto& plan : plans_)
      if (plan) text += fmt::format("{}{}", text.empty() ? "" : kBetweenChoices, plan->name());
    return text;
  }

  void check_made_for(const CudaExec& exec) const {
    SIMCLR_CHECK(exec.dnn == handle_ && exec.precision == precision_,
                 "a convolution planned for another device or precision");
  }
  void run(const CudaExec& exec, cudnn::ConvPass pass, const void* x, const void* stored_filter, const void* y,
           void* workspace) const {
    plans_[index_of(pass)]->run(exec.dnn, const_cast<void*>(x), const_cast<void*>(stored_filter), const_cast<void*>(y),
                                workspace);
  }

 private:
  cudnnContext* handle_;
  Precision precision_;
  std::array<std::optional<cudnn::ConvPlan>, 3> plans_;  // by pass; images have no gradient
  int64_t library_bytes_ = 0;
};

const CudaConv2dPlan& cuda(const Conv2dPlan& plan) {
  return static_cast<const CudaConv2dPlan&>(plan);
}

const void* shard_of(const void* data, int64_t shard, size_t bytes) {
  return static_cast<const std::byte*>(data) + shard * bytes;
}

// The library's workspace, and the stored filters behind it.
struct Workspace {
  std::byte* library;
  std::byte* filters;
};

Workspace cut_workspace(const CudaExec& exec, const CudaConv2dPlan& c, int64_t filters) {
  c.check_made_for(exec);
  auto* begin = workspace_as<std::byte>(exec, c.workspace_bytes(filters));
  return {begin, begin + c.library_bytes()};
}

}  // namespace

std::unique_ptr<Conv2dPlan> make_plan(const CudaExec& exec, const Conv2dParams& params, const std::string& choice) {
  return std::make_unique<CudaConv2dPlan>(exec, params, choice);
}

void forward(const CudaExec& exec, const Conv2dPlan& plan, ConstElements x, const float* weight, Elements y) {
  const auto& c = cuda(plan);
  const Workspace workspace = cut_workspace(exec, c, 1);
  store_filter(exec, c.filter, weight, workspace.filters);
  for (int64_t s = 0; s < c.params().shards; ++s)
    c.run(exec, cudnn::ConvPass::kForward, shard_of(x.address(), s, c.x_shard_bytes()), workspace.filters,
          shard_of(y.address(), s, c.y_shard_bytes()), workspace.library);
}

void backward_data(const CudaExec& exec, const Conv2dPlan& plan, ConstElements grad_y, const float* weight,
                   Elements grad_x) {
  const auto& c = cuda(plan);
  const Workspace workspace = cut_workspace(exec, c, 1);
  store_filter(exec, c.filter, weight, workspace.filters);
  for (int64_t s = 0; s < c.params().shards; ++s)
    c.run(exec, cudnn::ConvPass::kBackwardData, shard_of(grad_x.address(), s, c.x_shard_bytes()), workspace.filters,
          shard_of(grad_y.address(), s, c.y_shard_bytes()), workspace.library);
}

void backward_weights(const CudaExec& exec, const Conv2dPlan& plan, ConstElements x, ConstElements grad_y,
                      float* grad_weight) {
  const auto& c = cuda(plan);
  const int64_t shards = c.params().shards;
  const Workspace workspace = cut_workspace(exec, c, shards);
  for (int64_t s = 0; s < shards; ++s)
    c.run(exec, cudnn::ConvPass::kBackwardFilter, shard_of(x.address(), s, c.x_shard_bytes()),
          shard_of(workspace.filters, s, c.filter_bytes()), shard_of(grad_y.address(), s, c.y_shard_bytes()),
          workspace.library);
  sum_stored_gradients(exec, c.filter, workspace.filters, shards, c.filter_bytes() / size_of(c.storage), grad_weight);
}

}  // namespace simclr::conv2d
