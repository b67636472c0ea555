// The ring of batches and the threads that fill it.
#include "src/augment/view_loader.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <system_error>
#include <utility>

#include "kernels/common/error.h"
#include "src/augment/reduced_crops.h"

namespace simclr {
namespace {

// One batch is in use; two are made ahead, or only one if a batch is larger than this, to save memory.
constexpr size_t kLargeBatchBytes = size_t{256} << 20;
double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

size_t batch_slots(int workers, size_t batch_bytes) {
  if (workers == 0) return 1;
  return batch_bytes > kLargeBatchBytes ? 2 : 3;
}

int resolve_workers(int setting, bool decodes, int threads) {
  if (setting >= 0) return setting;
  return decodes ? threads : 1;
}

ViewLoader::ViewLoader(const Dataset& dataset, const SamplePlan& plan, const ViewParams& params,
                       const ViewLoaderSettings& settings)
    : dataset_(dataset),
      plan_(plan),
      params_(params),
      settings_(settings),
      key_(philox_key(settings.seed, RandomPurpose::kViews)),
      items_(settings.shard_count * plan.images_per_shard()),
      claim_step_(settings.start_step),
      next_step_(settings.start_step) {
  SIMCLR_CHECK(settings.first_shard >= 0 && settings.shard_count >= 1 &&
                   settings.first_shard + settings.shard_count <= plan.shards(),
               "shards {} to {} of {}", settings.first_shard, settings.first_shard + settings.shard_count,
               plan.shards());
  SIMCLR_CHECK(settings.start_step >= 0 && settings.workers >= 0, "step {}, {} workers", settings.start_step,
               settings.workers);
  Images shape{.data = nullptr,
               .shards = settings.shard_count,
               .samples = 2 * plan.images_per_shard(),
               .channels = 3,
               .height = params.size,
               .width = params.size};
  const size_t bytes = shape.elements() * sizeof(float);
  slots_.resize(batch_slots(settings.workers, bytes));
  for (Slot& slot : slots_) {
    slot.memory = Buffer(bytes);
    slot.batch.images = shape;
    slot.batch.images.data = slot.memory.as<float>().data();
    slot.batch.samples.resize(items_);
    slot.batch.step = -1;
    slot.claimed = slot.finished = items_;
  }
  free_until_ = settings.start_step + std::ssize(slots_);
  try {
    for (int i = 0; i < settings.workers; ++i) threads_.emplace_back([this] { run_worker(); });
  } catch (const std::system_error& error) {
    stop();
    fail(ExitCode::kDevice, "cannot start data worker {} of {}: {}; lower data.workers", threads_.size() + 1,
         settings.workers, error.what());
  }
}

ViewLoader::~ViewLoader() {
  stop();
}

void ViewLoader::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ViewLoader::begin_batch(Slot& slot, int64_t step) {
  slot.batch.step = step;
  slot.batch.epoch = plan_.epoch_of(step);
  auto at = slot.batch.samples.begin();
  for (int64_t s = 0; s < settings_.shard_count; ++s) {
    const std::vector<int64_t> samples = plan_.samples_of(step, settings_.first_shard + s);
    at = std::copy(samples.begin(), samples.end(), at);
  }
  slot.claimed = slot.finished = 0;
  slot.failed_item = -1;
  slot.error = nullptr;
}

void ViewLoader::make_views(Slot& slot, int64_t item, Worker& worker) const {
  const int64_t n = plan_.images_per_shard(), shard = item / n, place = item % n;
  const int64_t sample = slot.batch.samples[item];
  std::array<ViewDraw, 2> draws;
  int64_t height = 0, width = 0;  // of the image before reduction
  const auto draw_both = [&](int64_t whole_height, int64_t whole_width) {
    height = whole_height;
    width = whole_width;
    for (uint32_t view = 0; view < 2; ++view) {
      const ViewId id{
          .view = view, .sample = static_cast<uint32_t>(sample), .epoch = static_cast<uint32_t>(slot.batch.epoch)};
      draws[view] = draw_view(params_, key_, id, height, width);
    }
    return largest_reduction({draws[0].crop, draws[1].crop}, params_.size);
  };
  const PlanarImage image = dataset_.image_for(sample, draw_both, worker.image);
  const size_t needed = view_scratch_bytes(params_, image.height, image.width);
  if (worker.scratch.size() < needed) worker.scratch.resize(needed);
  for (uint32_t view = 0; view < 2; ++view) {
    ViewDraw draw = draws[view];
    draw.crop = crop_of_reduced(draw.crop, height, width, image);
    render_view(image, draw, params_, worker.scratch,
                slot.batch.images.sample((2 * shard + view) * n + place).as<float>());
  }
}

bool ViewLoader::claim_item(Slot*& slot, int64_t& item) {
  if (claim_step_ >= std::min(free_until_, settings_.end_step)) return false;
  slot = &slot_of(claim_step_);
  if (slot->claimed == items_) begin_batch(*slot, claim_step_);  // the slot still holds its last batch
  item = slot->claimed++;
  if (slot->claimed == items_) ++claim_step_;
  return true;
}

void ViewLoader::finish_item(Slot& slot, int64_t item, std::exception_ptr error) {
  if (error && (slot.failed_item < 0 || item < slot.failed_item)) {
    slot.failed_item = item;
    slot.error = std::move(error);
  }
  if (++slot.finished == items_) ready_.notify_one();
}

void ViewLoader::run_worker() {
  Worker worker;
  std::unique_lock lock(mutex_);
  try {
    while (!stopping_) {
      Slot* slot = nullptr;
      int64_t item = 0;
      if (!claim_item(slot, item)) {
        work_.wait(lock);
        continue;
      }
      lock.unlock();
      std::exception_ptr error;
      try {
        make_views(*slot, item, worker);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      finish_item(*slot, item, std::move(error));
    }
  } catch (...) {  // no memory for the samples of a batch: next() rethrows it
    broken_ = std::current_exception();
    ready_.notify_one();
  }
}

const Batch& ViewLoader::next() {
  const auto start = std::chrono::steady_clock::now();
  SIMCLR_CHECK(next_step_ < settings_.end_step, "no batch for step {}: the run has {} steps", next_step_,
               settings_.end_step);
  Slot& slot = slot_of(next_step_);
  if (threads_.empty()) {
    begin_batch(slot, next_step_);
    for (int64_t item = 0; item < items_; ++item) make_views(slot, item, inline_worker_);
  } else {
    wait_for(slot);
  }
  ++next_step_;
  last_wait_s_ = seconds_since(start);
  total_wait_s_ += last_wait_s_;
  return slot.batch;
}

void ViewLoader::wait_for(Slot& slot) {
  std::unique_lock lock(mutex_);
  free_until_ = next_step_ + std::ssize(slots_);  // the slot of the batch returned last is free again
  work_.notify_all();
  ready_.wait(lock, [&] { return broken_ || (slot.batch.step == next_step_ && slot.finished == items_); });
  if (broken_) std::rethrow_exception(broken_);
  if (slot.error) std::rethrow_exception(slot.error);
}

}  // namespace simclr
