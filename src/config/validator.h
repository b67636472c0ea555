// Checks what a type cannot say: the range of each key and contradictions between keys. All faults are told together,
// each with the place where the key was given. Whether the machine can do it (a GPU, memory, data) is checked
// elsewhere.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "src/config/faults.h"
#include "src/config/settings.h"

namespace simclr {

// Error(kUsage) with one line a fault. load_settings() has done this already; for Settings made by a program.
void validate(const Settings& settings, const KeyOrigins& origins = {});

// The same without throwing; nothing is said about keys in faulty, nor about contradictions that involve them.
void find_faults(const Settings& settings, const KeyOrigins& origins, std::set<std::string, std::less<>> faulty,
                 Faults& faults);

// The rules that depend on the number of ranks W. reduction ordered: W is a power of two that divides train.shards;
// fastest: W divides train.global_batch. Error(kUsage) lists the rank counts that would do.
void validate_ranks(const Settings& settings, int ranks, const KeyOrigins& origins = {});

// The rank counts that validate_ranks() accepts, ascending.
std::vector<int64_t> allowed_rank_counts(const Settings& settings);

}  // namespace simclr
