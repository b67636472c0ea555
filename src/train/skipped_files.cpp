#include "src/train/skipped_files.h"

#include <span>

#include "src/base/log.h"
#include "src/comm/gather.h"

namespace simclr {
namespace {

constexpr size_t kMostNamed = 20;

}  // namespace

SkippedFiles::SkippedFiles(const std::vector<const Dataset*>& sets) {
  for (const Dataset* set : sets) {
    if (set != nullptr && set->bad_files() != nullptr) lists_.push_back(set->bad_files());
  }
}

void SkippedFiles::report(Collectives& collectives) {
  std::string mine;  // one sentence a line
  for (BadFiles* list : lists_) {
    for (const std::string& sentence : list->take_new()) mine += sentence + "\n";
  }
  const std::vector<int64_t> sizes = gather(collectives, std::ssize(mine));
  std::set<std::string> found;
  for (int rank = 0; rank < collectives.size(); ++rank) {
    if (sizes[rank] == 0) continue;
    std::string text = rank == collectives.rank() ? mine : std::string();
    text.resize(sizes[rank]);
    collectives.broadcast(std::span(text), rank);
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      found.insert(text.substr(at, end - at));
      at = end + 1;
    }
  }
  const size_t before = reported_.size();
  for (const std::string& sentence : found) {
    if (!reported_.insert(sentence).second || reported_.size() > kMostNamed || collectives.rank() != 0) continue;
    log_warning("skipped {}", sentence);
  }
  if (reported_.size() == before || collectives.rank() != 0) return;
  log_warning("data.on_error: skip: files skipped so far: {}; each is replaced by the next readable image of its class",
              reported_.size());
}

}  // namespace simclr
