// Between the trainer's memory and checkpoint files: which tensors make up the state of a run, saving by rank 0,
// loading by rank 0 and broadcast to all. Formats and folders are src/checkpoint's business.
#pragma once

#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include "src/checkpoint/checkpoint_store.h"
#include "src/nn/model.h"
#include "src/optim/optimizer.h"
#include "src/runtime/run_context.h"

namespace simclr {

class StateIo {
 public:
  // header: config and environment as every checkpoint of this run records them. Only rank 0 touches files. beat: while
  // tensors are hashed and looked through, and while they are loaded; the store has its own.
  StateIo(CheckpointStore store, CheckpointHeader header, Model& model, const Optimizer& optimizer,
          const RunContext& run, Beat beat = no_beat);

  // Weights, batch-norm statistics and optimizer state, in the order of the file. In the memory of the device.
  const std::vector<NamedTensor>& tensors() const { return tensors_; }
  std::string weights_hash();  // 64 hex digits, as `simclr_train info` prints it
  bool is_finite();
  // A fingerprint of everything, to compare ranks: the place on the device where it will stand. Waits for nobody.
  const uint64_t* queue_state_hash();

  // Collective: the tensors in which ranks differ from rank 0, "conv1.weight on rank 1; bn1.weight on ranks 1, 3; and 4
  // more"; empty when there are none. The same text on every rank.
  std::string describe_drift();

  // Rank 0 copies the state and returns; a thread of its own writes the copy, durably. The other ranks return at once.
  // Waits for the save before, if that is still being written, and throws its error.
  void begin_save(int64_t step, int64_t epoch);
  // Rank 0: looks whether the save has ended, or waits for that. Throws the writer's Error(kOutput).
  void poll_save();
  void finish_save();
  // Rank 0 alone: the same as best.safetensors, when no earlier state of this run had such an accuracy.
  void keep_if_best(int64_t step, int64_t epoch, double accuracy);
  // `checkpoint` of status.json: the last one whose save was seen to end; empty before.
  const std::string& last_checkpoint() const { return last_checkpoint_; }

  // All ranks: finds where to resume (rank 0), compares its configuration with this run's, loads and broadcasts.
  // Returns the steps done (0: a fresh run). Throws the same Error on all ranks.
  int64_t resume(const std::string& resume, const Settings& settings);

  // All ranks, before the first step of a fresh run: rank 0 reads the weights of a file (model.init_from), all get
  // them; the checkpoints record their hash. Throws the same Error on all ranks.
  void start_from(const std::filesystem::path& file);

 private:
  void look_for_best(int64_t step);
  int64_t load_on_root(const std::string& resume, const Settings& settings);
  const std::vector<NamedTensor>& download();  // the tensors in the memory of the host, as they are now
  // A set of tensors of the same names and shapes in memory of the host.
  std::vector<NamedTensor> make_host_copy(Buffer& memory) const;
  void upload();     // the host's copy to the device
  void broadcast();  // the host's copy of rank 0 to all, and to their devices

  CheckpointStore store_;
  CheckpointHeader header_;
  Context& context_;
  Collectives& collectives_;  // on the memory of the host
  Beat beat_;
  std::vector<NamedTensor> tensors_;
  std::vector<NamedTensor> host_tensors_;  // on the CPU the same memory
  Buffer host_memory_;                     // theirs, when the device has its own
  Buffer state_hash_, non_finite_;         // one uint64_t; one int
  std::string last_checkpoint_;
  Buffer saved_memory_;                        // what is being written
  std::vector<NamedTensor> saved_tensors_;     // in it; none before the first save
  std::future<std::filesystem::path> saving_;  // after all that its thread reads
  double best_accuracy_ = -1;                  // of best.safetensors; -1: there is none
};

}  // namespace simclr
