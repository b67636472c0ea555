// Charts as SVG text for report.html. Their CSS classes are styled in page.cpp, so that they suit light and dark pages.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "src/report/history.h"

namespace simclr {

struct ChartLine {
  std::string name;
  std::vector<CurvePoint> points;
};

// Lines over steps with axes, grid and, for several lines, a legend. `title` is the text for screen readers.
std::string line_chart(const std::string& title, const std::vector<ChartLine>& lines);

struct MapGroup {
  std::string name;
  std::vector<std::array<double, 2>> points;
};
inline constexpr size_t kMostNamedGroups = 20;  // with more groups there is no legend

std::string point_map(const std::string& title, const std::vector<MapGroup>& groups);

// About `count` round numbers in [low, high]: 0, 0.5, 1, ...
std::vector<double> round_ticks(double low, double high, int count);

}  // namespace simclr
