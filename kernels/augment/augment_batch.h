// Views of many images in one call, on the memory of the device: what a loader hands its batch to. The decisions
// (draw_view) are made on the host, the same for every device; the pixels are made where the network needs them.
// Images lie side by side in one array of bytes: a whole data set on a GPU, or a batch of it that was copied there.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "kernels/augment/augment.h"
#include "kernels/common/exec.h"
#include "kernels/common/views.h"

namespace simclr {

// One view to be made.
struct ViewJob {
  int64_t offset = 0;             // of the image in the array, bytes; planar [3, height, width] from there on
  int64_t height = 0, width = 0;  // of the image; 0 and 0: no image, the view is all zeros
  ViewDraw draw{};                // its crop lies within the image
};
static_assert(std::is_trivially_copyable_v<ViewJob>, "jobs travel to the device as bytes");

// The job that shows the whole image as render_whole does: for evaluation.
ViewJob whole_image_job(int64_t offset, int64_t height, int64_t width);

// The jobs of one call, and the same in the memory of the device; on the CPU both are the same memory.
struct ViewJobs {
  std::span<const ViewJob> jobs;
  const ViewJob* on_device = nullptr;

  ViewJobs(std::span<const ViewJob> host, const ViewJob* device) : jobs(host), on_device(device) {}
  template <typename Jobs>  // implicit, for the CPU: anything that is a span of jobs
  ViewJobs(const Jobs& host) requires std::is_convertible_v<const Jobs&, std::span<const ViewJob>>
      : jobs(host), on_device(jobs.data()) {}
};

// For calls with these params and images of at most this size, any number of views. CPU: memory of each thread.
// CUDA: workspace where a view's planes do not fit the memory of a multiprocessor (4 floats a pixel: up to about
// 118x118 on an H100), 256 times 16 bytes a pixel.
ScratchNeed render_views_scratch(const Exec& exec, const ViewParams& params, int64_t height, int64_t width);

// images.sample(k) = the view of jobs[k], as render_view makes it; images is [shards, samples, 3, size, size] with
// shards * samples = jobs. CPU: float32 NCHW. CUDA: NHWC with kCudaImageChannels channels, those from 3 on zero,
// float32 or bfloat16; values before normalization are within 1e-5 of the CPU's. `images` is in the memory of the
// device. The bits of a view depend on its job and image alone. Synchronous on the CPU; on CUDA the host's jobs may
// change on return, those on the device when the stream has got there.
void render_views(const Exec& exec, const ViewParams& params, std::span<const uint8_t> sources, const ViewJobs& jobs,
                  const Images& images);

// One overload per device; all jobs are checked already.
namespace detail {
ScratchNeed render_views_scratch(const CpuExec& exec, const ViewParams& params, int64_t height, int64_t width);
void render_views(const CpuExec& exec, const ViewParams& params, const uint8_t* sources, const ViewJobs& jobs,
                  const Images& images);

ScratchNeed render_views_scratch(const CudaExec& exec, const ViewParams& params, int64_t height, int64_t width);
void render_views(const CudaExec& exec, const ViewParams& params, const uint8_t* sources, const ViewJobs& jobs,
                  const Images& images);
}  // namespace detail

}  // namespace simclr
