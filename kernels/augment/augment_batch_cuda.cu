// CUDA: one block a view, from the bytes of its image to the network's input (view_steps.cuh). Planes of the view are
// in the block's shared memory, or in the workspace where they do not fit; the bits are the same.
#include "kernels/augment/augment_batch.h"
#include "kernels/augment/augment_ops.h"
#include "kernels/augment/view_steps.cuh"
#include "kernels/common/cuda_check.h"
#include "kernels/common/launch.cuh"

namespace simclr::detail {
namespace {

constexpr int kViewThreads = 512;    // the mean's order, and so the bits, follow from it
constexpr int64_t kMostSlots = 256;  // views in work at a time in the workspace

struct Taps {
  int64_t rows = 1, columns = 1;
};

ViewLayout make_layout(const ViewParams& params, const Taps& taps) {
  const int64_t size = params.size;
  const bool blur = params.blur_probability > 0;
  ViewLayout at;
  at.row_weight = (blur ? 4 : 3) * size * size;
  at.column_weight = at.row_weight + taps.rows * size;
  at.row_first = at.column_weight + taps.columns * size;
  at.column_first = at.row_first + size;
  at.blur_weight = at.column_first + size;
  at.floats = round_up(at.blur_weight + (blur ? params.blur_taps : 0), 64);  // slots stay aligned
  return at;
}

template <typename T, bool kInShared>
__global__ void __launch_bounds__(kViewThreads)
    render_kernel(const uint8_t* sources, const ViewJob* jobs, int64_t views, ViewStepParams how, float* workspace,
                  Pixel<T>* images) {
  __shared__ double of_warp[kMostWarps];
  const int size = how.size, pixels = size * size;
  float* memory = kInShared ? dyn_shared<float>() : workspace + blockIdx.x * how.at.floats;
  float* x = memory + how.at.planes;  // [3, size, size]
  for (int64_t k = blockIdx.x; k < views; k += gridDim.x) {
    const ViewJob& job = jobs[k];
    Pixel<T>* out = images + k * pixels;
    if (job.height == 0) {
      write_image<T>(nullptr, how, out);
      continue;
    }
    crop_and_resize(sources + job.offset, job, how, memory, x);
    if (job.draw.jitter) apply_jitter_of(job.draw, x, pixels, of_warp);
    if (job.draw.grayscale) to_grayscale_of(x, pixels);
    if (job.draw.blur) {
      gaussian_blur_of(x, size, how.blur_taps, job.draw.blur_sigma, memory + how.at.blur_weight, x + 3 * pixels);
    }
    write_image(x, how, out);
    __syncthreads();  // the next view takes the memory
  }
}

// Dynamic shared memory that a block can have in addition to what the kernel declares.
int64_t most_shared_bytes() {
  int device = 0, bytes = 0;
  SIMCLR_CUDA(cudaGetDevice(&device));
  SIMCLR_CUDA(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  constexpr int64_t kDeclared = 1024;
  return bytes - kDeclared;
}

int64_t bytes_of(const ViewLayout& layout) {
  return layout.floats * int64_t{sizeof(float)};
}

Taps most_taps(std::span<const ViewJob> jobs, int64_t size) {
  Taps most;
  for (const ViewJob& job : jobs) {
    if (job.height == 0) continue;
    most.rows = std::max(most.rows, resample_taps(job.draw.crop.height, size));
    most.columns = std::max(most.columns, resample_taps(job.draw.crop.width, size));
  }
  return most;
}

template <typename T>
void render(const CudaExec& exec, const uint8_t* sources, const ViewJobs& jobs, const ViewStepParams& how, T* images) {
  const auto views = std::ssize(jobs.jobs);
  auto* out = reinterpret_cast<Pixel<T>*>(images);
  if (bytes_of(how.at) <= most_shared_bytes()) {
    const Grid grid{
        .blocks = blocks_of(views), .threads = kViewThreads, .shared_bytes = static_cast<size_t>(bytes_of(how.at))};
    launch(exec, "render_views", grid, render_kernel<T, true>, sources, jobs.on_device, views, how, nullptr, out);
    return;
  }
  const int64_t slots = std::min(views, kMostSlots);
  auto* workspace = workspace_as<float>(exec, slots * how.at.floats);
  launch(exec, "render_views in the workspace", {.blocks = blocks_of(slots), .threads = kViewThreads},
         render_kernel<T, false>, sources, jobs.on_device, views, how, workspace, out);
}

}  // namespace

ScratchNeed render_views_scratch(const CudaExec&, const ViewParams& params, int64_t height, int64_t width) {
  const ViewLayout layout =
      make_layout(params, {resample_taps(height, params.size), resample_taps(width, params.size)});
  if (bytes_of(layout) <= most_shared_bytes()) return {};
  return {.workspace_bytes = static_cast<size_t>(kMostSlots * bytes_of(layout))};
}

void render_views(const CudaExec& exec, const ViewParams& params, const uint8_t* sources, const ViewJobs& jobs,
                  const Images& images) {
  if (jobs.jobs.empty()) return;
  ViewStepParams how{.at = make_layout(params, most_taps(jobs.jobs, params.size)),
                     .size = static_cast<int>(params.size),
                     .blur_taps = static_cast<int>(params.blur_taps)};
  std::copy(params.mean.begin(), params.mean.end(), how.mean);
  std::copy(params.inverse_std.begin(), params.inverse_std.end(), how.inverse_std);
  with_storage(images.type(), [&]<typename T>(T) { render(exec, sources, jobs, how, images.data.as<T>()); });
}

}  // namespace simclr::detail
