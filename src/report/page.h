// report.html: a run on one page, without network access or scripts. Callers provide the contents; here is the layout.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/report/history.h"
#include "src/report/images.h"

namespace simclr {

// Parts of the page, as HTML. Empty parts are left out.
struct ReportParts {
  std::string facts;       // the start block of the log
  std::string pairs;       // images and their views
  std::string evaluation;  // neighbors and feature map of the last evaluation
};

struct ReportPage {
  std::string name;                   // of the run
  std::string state;                  // "running", "finished", "stopped (signal 15 to rank 0)"
  int64_t step = 0, total_steps = 0;  // total_steps 0: unknown
  std::string time;                   // of writing
  const RunHistory& history;
  std::string config_yaml;
  ReportParts parts;
};

std::string render(const ReportPage& page);

// Extracts the parts of a page rendered earlier, to render them again.
ReportParts parts_of(std::string_view html);

// A table with one row for each line such as "libraries: oneDNN …"; the text before the first ": " is the row's head.
std::string facts_part(const std::vector<std::string>& lines);
std::string pairs_part(const std::vector<AugmentedPair>& pairs);

}  // namespace simclr
