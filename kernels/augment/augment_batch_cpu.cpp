// CPU: render_view for each job, one task a view.
#include <algorithm>

#include "kernels/augment/augment_batch.h"
#include "kernels/common/parallel.h"

namespace simclr::detail {

ScratchNeed render_views_scratch(const CpuExec&, const ViewParams& params, int64_t height, int64_t width) {
  return {.thread_bytes = static_cast<size_t>(view_scratch_bytes(params, height, width))};
}

void render_views(const CpuExec& exec, const ViewParams& params, const uint8_t* sources, const ViewJobs& jobs,
                  const Images& images) {
  const auto views = images.as<float>();
  parallel_for(exec, std::ssize(jobs.jobs), [&](int64_t k, int thread) {
    const ViewJob& job = jobs.jobs[k];
    float* out = views.sample(k);  // [3, size, size]
    if (job.height == 0) {
      std::fill_n(out, views.sample_elements(), 0.0f);
      return;
    }
    const PlanarImage image{sources + job.offset, job.height, job.width};
    render_view(image, job.draw, params, {exec.scratch_of(thread), exec.thread_scratch_bytes}, out);
  });
}

}  // namespace simclr::detail
