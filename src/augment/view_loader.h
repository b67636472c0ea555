// Batches of random views, made ahead of the step by threads of their own. What a batch holds is a function of the
// seed, the step and the shards; the number of threads and what was asked before change nothing.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/augment/augment.h"
#include "src/augment/batch_source.h"
#include "src/data/dataset.h"
#include "src/data/sampler.h"
#include "src/device/buffer.h"

namespace simclr {

struct ViewLoaderSettings {
  uint64_t seed = 0;
  int64_t first_shard = 0, shard_count = 0;  // this rank's shards
  int64_t start_step = 0;                    // the step of the first batch
  int64_t end_step = 0;                      // no batch is made for this step and later ones
  int workers = 0;                           // threads; 0 = batches are made inside next()
};

// data.workers with auto (-1) resolved. Images in memory: one thread, which feeds 100 times what a core can train on
// 32x32 images. Images that are decoded: `threads`, the cores of this rank; they wait while nothing is to be done.
int resolve_workers(int setting, bool decodes, int threads);

// How many batches it holds at a time: the one in use and those ahead.
size_t batch_slots(int workers, size_t batch_bytes);

class ViewLoader final : public BatchSource {
 public:
  // The data set, the plan and their data outlive the loader. Work begins at once.
  ViewLoader(const Dataset& dataset, const SamplePlan& plan, const ViewParams& params,
             const ViewLoaderSettings& settings);
  ~ViewLoader() override;  // at any moment; waits for the images that are being made
  ViewLoader(const ViewLoader&) = delete;
  ViewLoader& operator=(const ViewLoader&) = delete;

  const Batch& next() override;
  double last_wait_s() const override { return last_wait_s_; }
  double total_wait_s() const { return total_wait_s_; }

 private:
  // A batch under way. Images are claimed one by one, in order; the slot of a step is step % slots.
  struct Slot {
    Batch batch;
    Buffer memory;
    int64_t claimed = 0, finished = 0;  // images
    int64_t failed_item = -1;           // the first image that threw
    std::exception_ptr error;
  };
  // Memory that one thread works in.
  struct Worker {
    std::vector<uint8_t> image;
    std::vector<std::byte> scratch;
  };

  Slot& slot_of(int64_t step) { return slots_[static_cast<size_t>(step) % slots_.size()]; }
  void begin_batch(Slot& slot, int64_t step);                       // under the lock
  void make_views(Slot& slot, int64_t item, Worker& worker) const;  // both views of image `item` of the batch
  void finish_item(Slot& slot, int64_t item, std::exception_ptr error);
  bool claim_item(Slot*& slot, int64_t& item);  // under the lock; false: nothing to do now
  void run_worker();
  void wait_for(Slot& slot);  // until the batch of next_step_ is done; rethrows its error
  void stop();                // ends the threads

  const Dataset& dataset_;
  const SamplePlan& plan_;
  const ViewParams params_;
  const ViewLoaderSettings settings_;
  const PhiloxKey key_;
  const int64_t items_;  // images a batch
  std::vector<Slot> slots_;

  std::mutex mutex_;  // guards everything below, and claimed, finished, failed_item, error of the slots
  std::condition_variable work_, ready_;
  int64_t claim_step_;      // whose images are being claimed
  int64_t free_until_ = 0;  // first step that has no free slot yet
  bool stopping_ = false;
  std::exception_ptr broken_;  // a worker died

  int64_t next_step_;  // that next() will hand out; of the calling thread, like the rest
  double last_wait_s_ = 0, total_wait_s_ = 0;
  Worker inline_worker_;
  std::vector<std::thread> threads_;
};

}  // namespace simclr
