// Reports, once and on rank 0, each file that some rank skipped (data.on_error: skip).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "src/comm/collectives.h"
#include "src/data/dataset.h"

namespace simclr {

class SkippedFiles {
 public:
  // The sets outlive this; null and sets that cannot skip files are ignored.
  explicit SkippedFiles(const std::vector<const Dataset*>& sets);

  bool can_skip() const { return !lists_.empty(); }

  // Collective. Rank 0 warns of new files: the first twenty of the run by name, the others as a count.
  void report(Collectives& collectives);

 private:
  std::vector<BadFiles*> lists_;
  std::set<std::string> reported_;  // the same on all ranks
};

}  // namespace simclr
