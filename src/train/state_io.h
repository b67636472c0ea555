// The state of a run between the memory of the device and checkpoint files: rank 0 saves and loads, all ranks get what
// it loads. File formats and folders are in src/checkpoint.
#pragma once

#include <filesystem>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "src/checkpoint/checkpoint_store.h"
#include "src/nn/model.h"
#include "src/optim/optimizer.h"
#include "src/runtime/run_context.h"
#include "src/train/host_tensors.h"

namespace simclr {

class StateIo {
 public:
  // header: config and environment as every checkpoint of this run records them. Only rank 0 touches files. beat: while
  // tensors are hashed, checked and loaded; the store has its own.
  StateIo(CheckpointStore store, CheckpointHeader header, Model& model, const Optimizer& optimizer,
          const RunContext& run, Beat beat = no_beat);

  // Weights, batch-norm statistics and optimizer state, in the order of the file. In the memory of the device.
  const std::vector<NamedTensor>& tensors() const { return tensors_; }
  std::string weights_hash();  // 64 hex digits, as `simclr_train info` prints it
  bool is_finite();
  // A fingerprint of everything, to compare ranks: its address on the device, where it is queued. Waits for nothing.
  const uint64_t* queue_state_hash();

  // Collective: the tensors in which ranks differ from rank 0, "conv1.weight on rank 1; bn1.weight on ranks 1, 3; and 4
  // more"; empty when there are none. The same text on every rank.
  std::string describe_drift();

  // Rank 0 copies the state and returns; a thread of its own writes the copy, durably. The other ranks return at once.
  // Waits for the save before, if that is still being written, and throws its error.
  // evaluation_due: the evaluation after this step was abandoned; a run that resumes here makes it first.
  void begin_save(int64_t step, int64_t epoch, bool evaluation_due = false);
  // Rank 0: checks whether the save has ended, or waits for its end. Throws the writer's Error(kOutput).
  void poll_save();
  void finish_save();
  // Rank 0 alone: the same as best.safetensors, when no earlier state of this run had such an accuracy.
  void keep_if_best(int64_t step, int64_t epoch, double accuracy);
  // `checkpoint` of status.json: the last one whose save was seen to end; empty before.
  const std::string& last_checkpoint() const { return last_checkpoint_; }

  // All ranks: finds where to resume (rank 0), compares its configuration with this run's, loads and broadcasts.
  // Returns the steps done (0: a fresh run). Throws the same Error on all ranks.
  int64_t resume(const std::string& resume, const Settings& settings);
  // After resume(), on all ranks: what begin_save() recorded.
  bool evaluation_due() const { return evaluation_due_; }

  // All ranks, before the first step of a fresh run: rank 0 reads the weights of a file (model.init_from), all get
  // them; the checkpoints record their hash. Throws the same Error on all ranks.
  void start_from(const std::filesystem::path& file);

 private:
  void find_best(int64_t step);
  int64_t load_on_root(const std::string& resume, const Settings& settings);
  const std::vector<NamedTensor>& download();  // the tensors in the memory of the host, as they are now

  CheckpointStore store_;
  CheckpointHeader header_;
  Context& context_;
  Collectives& collectives_;  // on the memory of the host
  Beat beat_;
  const std::vector<NamedTensor> tensors_;
  HostTensors on_host_;
  Buffer state_hash_, non_finite_;  // one uint64_t; one int
  std::string last_checkpoint_;
  std::optional<HostTensors> saved_;           // what is being written; none before the first save
  std::future<std::filesystem::path> saving_;  // after all that its thread reads
  double best_accuracy_ = -1;                  // of best.safetensors; -1: there is none
  bool evaluation_due_ = false;
};

}  // namespace simclr
