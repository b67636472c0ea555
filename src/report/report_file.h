// report.html in a run folder: reads the parts of an existing report, and replaces the file durably.
#pragma once

#include <filesystem>

#include "src/report/page.h"

namespace simclr {

inline constexpr const char* kReportName = "report.html";

// The parts of the report in this folder; empty if there is no report. Error(kOutput) if it cannot be read.
ReportParts earlier_parts(const std::filesystem::path& folder);

// Renders the page with the present time and writes it. Error(kOutput) with path and reason.
void write_report_file(const std::filesystem::path& folder, ReportPage page);

}  // namespace simclr
