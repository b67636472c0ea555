// report.html in a run folder: reading back what an earlier one shows, and replacing it durably.
#pragma once

#include <filesystem>

#include "src/report/page.h"

namespace simclr {

inline constexpr const char* kReportName = "report.html";

// The parts of the report in this folder; empty ones if it has none. Error(kOutput) for a file that cannot be read.
ReportParts earlier_parts(const std::filesystem::path& folder);

// Renders the page with the present time and writes it. Error(kOutput) with path and reason.
void write_report_file(const std::filesystem::path& folder, ReportPage page);

}  // namespace simclr
