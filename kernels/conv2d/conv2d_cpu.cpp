// conv2d on oneDNN: one library call per shard, with the primitives of a CpuConv2dPlan.
#include <algorithm>

#include "kernels/common/bfloat16.h"
#include "kernels/common/ordered_tree.h"
#include "kernels/common/parallel.h"
#include "kernels/conv2d/conv2d_device.h"
#include "kernels/conv2d/cpu_conv2d_plan.h"
#include "kernels/conv2d/winograd_weights.h"

namespace simclr::conv2d {
namespace {

using dnnl::memory;
using Format = memory::format_tag;

constexpr int64_t kSumChunk = 4096;  // elements that one task of the tree sum takes

memory::desc scratchpad_desc(size_t bytes) {
  const int64_t count = bytes;
  return {{count}, memory::data_type::u8, Format::a};
}

const CpuConv2dPlan& cpu(const Conv2dPlan& plan) {
  return static_cast<const CpuConv2dPlan&>(plan);
}

// Shard s of an array of them, each as `one` describes. The library takes inputs as void*, too.
void* shard_of(const void* shards, const memory::desc& one, int64_t s) {
  return const_cast<std::byte*>(static_cast<const std::byte*>(shards)) + s * one.get_size();
}

void repack(const CpuExec& exec, const memory::desc& from, const void* source, const memory::desc& to, void* target) {
  omp_set_num_threads(exec.threads);  // elements are moved, not summed: any thread count gives the same bits
  memory in(from, onednn::cpu_engine(), const_cast<void*>(source)), out(to, onednn::cpu_engine(), target);
  auto& stream = onednn::thread_stream();
  dnnl::reorder(in, out).execute(stream, in, out);
  stream.wait();
}

// The workspace: padded plain weights and rounded images first (either may be empty), then packed weights.
struct Workspace {
  float* padded;
  Bfloat16* images;
  std::byte* packed;
};

Workspace cut_workspace(const CpuExec& exec, const CpuConv2dPlan& c, size_t packed_bytes) {
  const size_t padded = round_up_256(c.padded_bytes()), images = round_up_256(c.image_bytes());
  auto* begin = workspace_as<std::byte>(exec, padded + images + packed_bytes);
  return {reinterpret_cast<float*>(begin), reinterpret_cast<Bfloat16*>(begin + padded), begin + padded + images};
}

// The convolution's input as the library takes it: itself, or images rounded into the workspace.
const void* library_input(const CpuExec& exec, const CpuConv2dPlan& c, ConstElements x) {
  if (!c.rounds_images) return x.address();
  const float* from = x.as<float>();
  Bfloat16* images = cut_workspace(exec, c, 0).images;
  const auto& p = c.params();
  const int64_t each = p.in_channels * p.height * p.width;
  parallel_for(exec, p.shards * p.samples,
               [&](int64_t i, int) { to_bfloat16(from + i * each, each, images + i * each); });
  return images;
}

// The weights as the library takes them, in the workspace.
std::byte* pack_weights(const CpuExec& exec, const CpuConv2dPlan& c, const float* weight, Pass pass,
                        const CpuConvolution& convolution) {
  const Workspace workspace = cut_workspace(exec, c, convolution.weights.get_size());
  const auto& p = c.params();
  if (convolution.transformed) {
    transform_weights(exec, weight, p.out_channels, p.in_channels, pass, *convolution.transformed,
                      reinterpret_cast<float*>(workspace.packed));
    return workspace.packed;
  }
  if (c.pads_weights()) {
    const int64_t taps = p.kernel * p.kernel, real = p.in_channels * taps, whole = c.library_in * taps;
    for (int64_t o = 0; o < p.out_channels; ++o) {
      std::copy_n(weight + o * real, real, workspace.padded + o * whole);
      std::fill_n(workspace.padded + o * whole + real, whole - real, 0.0F);
    }
    weight = workspace.padded;
  }
  repack(exec, c.plain_weights, weight, convolution.weights, workspace.packed);
  return workspace.packed;
}

// And back: a gradient in the library's layout to plain OIHW.
void unpack_gradient(const CpuExec& exec, const CpuConv2dPlan& c, const float* packed, float* grad_weight) {
  if (!c.pads_weights()) return repack(exec, c.backward_weights.grad_weights, packed, c.plain_weights, grad_weight);
  const Workspace workspace = cut_workspace(exec, c, 0);
  repack(exec, c.backward_weights.grad_weights, packed, c.plain_weights, workspace.padded);
  const auto& p = c.params();
  const int64_t taps = p.kernel * p.kernel, real = p.in_channels * taps, whole = c.library_in * taps;
  for (int64_t o = 0; o < p.out_channels; ++o) std::copy_n(workspace.padded + o * whole, real, grad_weight + o * real);
}

// The scratch of one thread, handed out in pieces.
class ThreadScratch {
 public:
  ThreadScratch(const CpuExec& exec, int thread, size_t bytes) : next_(exec.scratch_of(thread)) {
    SIMCLR_CHECK(bytes <= exec.thread_scratch_bytes, "convolution needs {} bytes of scratch per thread, {} are there",
                 bytes, exec.thread_scratch_bytes);
  }
  memory take(const memory::desc& desc) {
    std::byte* at = next_;
    next_ += round_up_256(desc.get_size());
    return {desc, onednn::cpu_engine(), at};
  }

 private:
  std::byte* next_;
};

void copy(memory from, memory to) {
  auto& stream = onednn::thread_stream();
  dnnl::reorder(from, to).execute(stream, from, to);
}

// A shard's map as the primitive reads it: itself, or a copy in the layout `plain` where there is one.
memory as_input(const memory& map, const memory::desc& plain, ThreadScratch& scratch) {
  if (plain.is_zero()) return map;
  const memory inside = scratch.take(plain);
  copy(map, inside);
  return inside;
}

struct Maps {
  const memory::desc& shard;
  const void* all;
  memory of(int64_t s) const { return {shard, onednn::cpu_engine(), shard_of(all, shard, s)}; }
};

// output = convolution of input, a call for each shard.
void convolve(const CpuExec& exec, const CpuConv2dPlan& c, const CpuConvolution& convolution, const Maps& input,
              const void* weights, const Maps& output) {
  parallel_for(exec, c.params().shards, [&](int64_t s, int thread) {
    ThreadScratch scratch(exec, thread, thread_bytes(convolution));
    const memory scratchpad = scratch.take(scratchpad_desc(convolution.scratch_bytes));
    const memory from = as_input(input.of(s), convolution.plain_input, scratch), to = output.of(s);
    const bool copied = !convolution.plain_output.is_zero();
    const memory result = copied ? scratch.take(convolution.plain_output) : to;
    convolution.primitive.execute(
        onednn::thread_stream(),
        {{convolution.input, from},
         {DNNL_ARG_WEIGHTS, memory(convolution.weights, onednn::cpu_engine(), const_cast<void*>(weights))},
         {convolution.output, result},
         {DNNL_ARG_SCRATCHPAD, scratchpad}});
    if (copied) copy(result, to);
  });
}

}  // namespace

std::unique_ptr<Conv2dPlan> make_plan(const CpuExec& exec, const Conv2dParams& params, const std::string& choice) {
  return onednn::guarded("create convolution",
                         [&] { return std::make_unique<CpuConv2dPlan>(params, exec.storage(), choice); });
}

void forward(const CpuExec& exec, const Conv2dPlan& plan, ConstElements x, const float* weight, Elements y) {
  const auto& c = cpu(plan);
  onednn::guarded("convolution forward", [&] {
    const void* weights = pack_weights(exec, c, weight, Pass::kForward, c.forward);
    convolve(exec, c, c.forward, {c.x, library_input(exec, c, x)}, weights, {c.y, y.address()});
  });
}

void backward_data(const CpuExec& exec, const Conv2dPlan& plan, ConstElements grad_y, const float* weight,
                   Elements grad_x) {
  const auto& c = cpu(plan);
  onednn::guarded("convolution backward data", [&] {
    const void* weights = pack_weights(exec, c, weight, Pass::kBackwardData, c.backward_data);
    convolve(exec, c, c.backward_data, {c.y, grad_y.address()}, weights, {c.x, grad_x.address()});
  });
}

void backward_weights(const CpuExec& exec, const Conv2dPlan& plan, ConstElements x, ConstElements grad_y,
                      float* grad_weight) {
  const auto& c = cpu(plan);
  onednn::guarded("convolution backward weights", [&] {
    const int64_t shards = c.params().shards;
    std::byte* parts = cut_workspace(exec, c, c.grad_stride() * shards).packed;  // a gradient per shard
    const auto part = [&](int64_t s) { return reinterpret_cast<float*>(parts + c.grad_stride() * s); };
    const void* input = library_input(exec, c, x);
    const CpuBackwardWeights& convolution = c.backward_weights;
    const Maps all_x{c.x, input}, all_y{c.y, grad_y.address()};
    parallel_for(exec, shards, [&](int64_t s, int thread) {
      ThreadScratch scratch(exec, thread, thread_bytes(convolution));
      const memory scratchpad = scratch.take(scratchpad_desc(convolution.scratch_bytes));
      convolution.primitive.execute(
          onednn::thread_stream(),
          {{DNNL_ARG_SRC, as_input(all_x.of(s), convolution.plain_x, scratch)},
           {DNNL_ARG_DIFF_DST, as_input(all_y.of(s), convolution.plain_y, scratch)},
           {DNNL_ARG_DIFF_WEIGHTS, memory(convolution.grad_weights, onednn::cpu_engine(), part(s))},
           {DNNL_ARG_SCRATCHPAD, scratchpad}});
    });
    const int64_t elements = convolution.grad_weights.get_size() / sizeof(float);
    parallel_for(exec, (elements + kSumChunk - 1) / kSumChunk, [&](int64_t chunk, int) {
      ordered_tree_sum<float>(part, shards, chunk * kSumChunk, std::min(elements, (chunk + 1) * kSumChunk));
    });
    unpack_gradient(exec, c, part(0), grad_weight);
  });
}

}  // namespace simclr::conv2d
