// Makes batches of random views ahead of the step, in threads of its own. A batch is a function of the seed, the step
// and the shards; it depends neither on the number of threads nor on earlier calls.
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
  int64_t end_step = 0;                      // batches are made for steps before this one
  int workers = 0;                           // threads; 0: batches are made inside next()
};

// Resolves data.workers: auto (-1). Images in memory: one thread, which makes 100 times as many 32x32 views as a core
// can train on. Images that are decoded: `threads`, the cores of this rank; idle workers sleep.
int resolve_workers(int setting, bool decodes, int threads);

// Number of batches in memory: the one in use and those made ahead.
size_t batch_slots(int workers, size_t batch_bytes);

class ViewLoader final : public BatchSource {
 public:
  // The data set and the plan outlive the loader. The workers start at once.
  ViewLoader(const Dataset& dataset, const SamplePlan& plan, const ViewParams& params,
             const ViewLoaderSettings& settings);
  ~ViewLoader() override;  // allowed at any time; waits for the images in progress
  ViewLoader(const ViewLoader&) = delete;
  ViewLoader& operator=(const ViewLoader&) = delete;

  const Batch& next() override;
  double last_wait_s() const override { return last_wait_s_; }
  double total_wait_s() const { return total_wait_s_; }

 private:
  // A batch in progress. Workers claim its images one by one, in order; the slot of a step is step % slots.
  struct Slot {
    Batch batch;
    Buffer memory;
    int64_t claimed = 0, finished = 0;  // images
    int64_t failed_item = -1;           // the first image whose error is in `error`
    std::exception_ptr error;
  };
  // Memory of one thread.
  struct Worker {
    std::vector<uint8_t> image;
    std::vector<std::byte> scratch;
  };

  Slot& slot_of(int64_t step) { return slots_[step % std::ssize(slots_)]; }
  void begin_batch(Slot& slot, int64_t step);                       // the caller holds the lock
  void make_views(Slot& slot, int64_t item, Worker& worker) const;  // both views of image `item` of the batch
  void finish_item(Slot& slot, int64_t item, std::exception_ptr error);
  bool claim_item(Slot*& slot, int64_t& item);  // the caller holds the lock; false: nothing to do now
  void run_worker();
  void wait_for(Slot& slot);  // until the batch of next_step_ is done; rethrows its error
  void stop();                // joins the threads

  const Dataset& dataset_;
  const SamplePlan& plan_;
  const ViewParams params_;
  const ViewLoaderSettings settings_;
  const PhiloxKey key_;
  const int64_t items_;  // images a batch
  std::vector<Slot> slots_;

  std::mutex mutex_;  // guards everything below, and claimed, finished, failed_item, error of the slots
  std::condition_variable work_, ready_;
  int64_t claim_step_;      // the step whose images are being claimed
  int64_t free_until_ = 0;  // first step without a free slot
  bool stopping_ = false;
  std::exception_ptr broken_;  // the error that ended a worker

  int64_t next_step_;  // the step that next() returns; this and the rest belong to the calling thread
  double last_wait_s_ = 0, total_wait_s_ = 0;
  Worker inline_worker_;
  std::vector<std::thread> threads_;
};

}  // namespace simclr
