// What follows from the settings alone: derived values, the resolved YAML, and the hash and the comparison by which two
// runs are the same mathematics.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/config/settings.h"

namespace simclr {

// The learning rate that the schedule warms up to and decays from. B = train.global_batch.
//   none    base_lr
//   linear  base_lr * B / 256   Goyal et al. 2017, "Accurate, large minibatch SGD"; SimCLR (Chen et al. 2020, section 2.2)
//   sqrt    base_lr * sqrt(B)   SimCLR, appendix B.1; --learning_rate_scaling=sqrt of google-research/simclr
double scaled_learning_rate(const Settings& settings);

// The settings of a run once its device is known: the same, without an `auto` that is part of the mathematics.
//   loss.algorithm of infonce   streaming on a CPU; einsum on a GPU, until streaming has been timed on one
Settings resolve_for_device(Settings settings, bool on_gpu);

// The number of shards of a global batch: train.shards, or one per rank with reduction fastest.
int64_t shard_count(const Settings& settings, int ranks);
// n = B / shard_count; the shards divide B (validate_ranks() has checked it).
int64_t images_per_shard(const Settings& settings, int ranks);

// All keys with their values as YAML that loads again and gives equal Settings; derived values as comments.
std::string print_config(const Settings& settings);

// 64 hex digits: sha256 over the keys that are part of the mathematics of a run, as resolve_for_device() returns them.
// Equal for every rank count, machine, output folder, thread count.
std::string config_hash(const Settings& settings);

struct SettingDifference {
  std::string key;
  std::string saved;  // as YAML
  std::string now;
};

// The keys of config_hash() in which the two differ, in the order of the structs; empty = a resume is exact.
std::vector<SettingDifference> compare_for_resume(const Settings& saved, const Settings& now);

// The keys among those of config_hash() that an entry of resume.allow names: by path, by section (`schedule`), or by a
// last word that only one of them has (`epochs`). `data` also names the training images: allows_other_images().
std::vector<std::string> keys_named_by(const std::string& entry);
bool allows_other_images(const ResumeSettings& resume);

}  // namespace simclr
