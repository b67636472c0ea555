// report.html: a run on one page that needs no network and runs no script. What it shows is put together by the
// callers; here is how it looks.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/report/history.h"
#include "src/report/images.h"

namespace simclr {

// Parts of the page, as HTML. Empty ones are left out.
struct ReportParts {
  std::string facts;       // what the run said about itself before its first step
  std::string pairs;       // images and their views
  std::string evaluation;  // neighbors and map of the last evaluation
};

struct ReportPage {
  std::string name;                   // of the run
  std::string state;                  // "running", "finished", "stopped (signal 15 to rank 0)"
  int64_t step = 0, total_steps = 0;  // total_steps 0: not known
  std::string time;                   // when this was written
  const RunHistory& history;
  std::string config_yaml;
  ReportParts parts;
};

std::string render(const ReportPage& page);

// The parts of a page that was rendered before, to be shown again.
ReportParts parts_of(std::string_view html);

// "libraries: oneDNN …": a row each, the words before the first ": " as its head.
std::string facts_part(const std::vector<std::string>& lines);
std::string pairs_part(const std::vector<AugmentedPair>& pairs);

}  // namespace simclr
