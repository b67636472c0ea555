// Values that follow from the settings alone: the scaled learning rate, the shards, the resolved YAML, and the hash and
// the comparison that decide whether two runs have the same mathematics. Not for values that depend on data or ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/config/settings.h"

namespace simclr {

// The peak learning rate: the schedule warms up to it and decays from it. B = train.global_batch.
//
//   lr_scaling   rate                source
//   none         base_lr
//   linear       base_lr * B / 256   Goyal et al. 2017, "Accurate, large minibatch SGD"; SimCLR (Chen et al. 2020), 2.2
//   sqrt         base_lr * sqrt(B)   SimCLR, appendix B.1; --learning_rate_scaling=sqrt of google-research/simclr
double scaled_learning_rate(const Settings& settings);

// The settings with every `auto` that affects the mathematics replaced, once the device of the run is known.
//
//   key              value                 on a CPU     on a GPU
//   loss.algorithm   auto, type: infonce   streaming    einsum (streaming has not been timed on a GPU yet)
Settings resolve_for_device(Settings settings, bool on_gpu);

// The number of shards of a global batch: train.shards, or one per rank with reduction fastest.
int64_t shard_count(const Settings& settings, int ranks);
// n = B / shard_count. The shards divide B: validate_ranks() has checked it.
int64_t images_per_shard(const Settings& settings, int ranks);

// All keys with their values, as YAML that loads to equal Settings; derived values as comments.
std::string print_config(const Settings& settings);

// SHA-256 in 64 hex digits over the keys that affect the mathematics of a run, as resolve_for_device() returns them.
// Independent of the number of ranks and threads, the machine and the output folder.
std::string config_hash(const Settings& settings);

struct SettingDifference {
  std::string key;
  std::string saved;  // as YAML
  std::string now;
};

// The keys of config_hash() whose values differ, in the order of the structs; empty: a resume is exact.
std::vector<SettingDifference> compare_for_resume(const Settings& saved, const Settings& now);

// The keys of config_hash() that an entry of resume.allow names: by path, by section (`schedule`), or by a last word
// that is unique (`epochs`). `data` also names the training images: see allows_other_images().
std::vector<std::string> keys_named_by(const std::string& entry);
bool allows_other_images(const ResumeSettings& resume);

}  // namespace simclr
