// Charts as SVG text, to stand inside a page whose style knows their classes (page.cpp). Colors come from the page, so
// that they suit light and dark.
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

// Lines over steps with axes, grid and, for several lines, their names. `title` is read out instead of the image.
std::string line_chart(const std::string& title, const std::vector<ChartLine>& lines);

struct MapGroup {
  std::string name;
  std::vector<std::array<double, 2>> points;
};
inline constexpr size_t kMostNamedGroups = 20;  // more have colors alone

std::string point_map(const std::string& title, const std::vector<MapGroup>& groups);

// About `count` round numbers from low to high, both inside: 0, 0.5, 1, ...
std::vector<double> round_ticks(double low, double high, int count);

}  // namespace simclr
