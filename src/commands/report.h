// `simclr_train report`: writes report.html of a run folder again, e.g. after a crash.
#pragma once

#include <filesystem>
#include <string>

namespace simclr {

// The report as metrics.jsonl, config.yaml and status.json of the folder now say, with the images and the start block
// that its earlier report shows. Returns one line for the user. Throws Error: kUsage or kData for the files it reads,
// kOutput for the report.
std::string rewrite_report(const std::filesystem::path& folder);

}  // namespace simclr
