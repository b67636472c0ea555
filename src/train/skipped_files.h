// data.on_error: skip, told: every file that any rank passed over, once, on rank 0.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "src/comm/collectives.h"
#include "src/data/dataset.h"

namespace simclr {

class SkippedFiles {
 public:
  // The sets outlive this; null and sets that pass over nothing do not count.
  explicit SkippedFiles(const std::vector<const Dataset*>& sets);

  bool can_have_some() const { return !lists_.empty(); }

  // Collective. Rank 0 warns of what is new: twenty files by name in the whole run, the others as a number.
  void report(Collectives& collectives);

 private:
  std::vector<BadFiles*> lists_;
  std::set<std::string> reported_;  // the same on all ranks
};

}  // namespace simclr
