#include "src/report/report_file.h"

#include <array>
#include <ctime>

#include "src/base/file.h"

namespace simclr {
namespace {

constexpr int64_t kMostBytes = int64_t{16} << 20;

std::string now() {
  const std::time_t time = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&time, &parts);
  std::array<char, 64> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text.data();
}

}  // namespace

ReportParts earlier_parts(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kReportName;
  if (!std::filesystem::is_regular_file(path)) return {};
  return parts_of(read_file(path, kMostBytes));
}

void write_report_file(const std::filesystem::path& folder, ReportPage page) {
  page.time = now();
  write_file_durably(folder / kReportName, render(page));
}

}  // namespace simclr
