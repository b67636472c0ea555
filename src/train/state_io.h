// Between the trainer's memory and checkpoint files: which tensors make up the state of a run, saving by rank 0,
// loading by rank 0 and broadcast to all. Formats and folders are src/checkpoint's business.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "src/checkpoint/checkpoint_store.h"
#include "src/comm/collectives.h"
#include "src/nn/model.h"
#include "src/optim/optimizer.h"

namespace simclr {

class StateIo {
 public:
  // header: config and environment as every checkpoint of this run records them. Only rank 0 touches files. beat: while
  // tensors are hashed and looked through, and while they are loaded; the store has its own.
  StateIo(CheckpointStore store, CheckpointHeader header, Model& model, const Optimizer& optimizer,
          Collectives& collectives, Beat beat = no_beat);

  // Weights, batch-norm statistics and optimizer state, in the order of the file.
  const std::vector<NamedTensor>& tensors() const { return tensors_; }
  std::string weights_hash() const;  // 64 hex digits, as `simclr_train info` prints it
  uint64_t state_hash() const;       // of everything, to compare ranks
  bool is_finite(const Exec& exec) const;

  // Rank 0 writes, durably; the others return at once. `checkpoint` of status.json: the last one, empty before.
  void save(int64_t step, int64_t epoch);
  const std::string& last_checkpoint() const { return last_checkpoint_; }

  // All ranks: finds where to resume (rank 0), compares its configuration with this run's, loads and broadcasts.
  // Returns the steps done (0: a fresh run). Throws the same Error on all ranks.
  int64_t resume(const std::string& resume, const Settings& settings);

 private:
  int64_t load_on_root(const std::string& resume, const Settings& settings);

  CheckpointStore store_;
  CheckpointHeader header_;
  Collectives& collectives_;
  Beat beat_;
  std::vector<NamedTensor> tensors_;
  std::string last_checkpoint_;
};

}  // namespace simclr
