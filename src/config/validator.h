// Checks what a type cannot express: the range of each key and contradictions between keys. All errors are reported
// together, each with the place where the key was given. Whether the machine meets the configuration (a GPU, memory,
// data) is checked elsewhere.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "src/config/config_errors.h"
#include "src/config/settings.h"

namespace simclr {

// Throws Error(kUsage) with one line per error. For Settings made by a program: load_settings() does this itself.
void validate(const Settings& settings, const KeyOrigins& origins = {});

// The same without throwing. Keys in `invalid`, and contradictions that involve them, are not checked.
void find_errors(const Settings& settings, const KeyOrigins& origins, std::set<std::string, std::less<>> invalid,
                 ConfigErrors& errors);

// The rules that depend on the number of ranks W. With reduction ordered, W is a power of two that divides
// train.shards; with fastest, W divides train.global_batch. Error(kUsage) lists valid numbers of ranks.
void validate_ranks(const Settings& settings, int ranks, const KeyOrigins& origins = {});

// The numbers of ranks that validate_ranks() accepts, ascending.
std::vector<int64_t> allowed_rank_counts(const Settings& settings);

}  // namespace simclr
