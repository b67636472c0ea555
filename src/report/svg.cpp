#include "src/report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/report/html.h"

namespace simclr {
namespace {

struct Span {
  double low = 0, high = 1;
};

Span span_of(double low, double high) {
  if (high > low) return {low, high};
  const double room = low == 0 ? 1 : std::abs(low) * 0.1;
  return {low - room, high + room};
}

std::string tick_text(double value) {
  const double size = std::abs(value);
  if (size >= 1e6) return fmt::format("{:.3g}M", value / 1e6);
  if (size >= 1e4) return fmt::format("{:.3g}k", value / 1e3);
  return fmt::format("{:.4g}", value);
}

// Ten colors that differ in lightness too, readable on white and on near black.
constexpr std::array<const char*, 10> kColors = {"#4c8bd0", "#e07b39", "#3fa464", "#cf4b55", "#9273c4",
                                                 "#a0704f", "#d977b5", "#8a8f98", "#b5a53a", "#35a7b5"};

std::string color_of(size_t group, size_t groups) {
  if (groups <= kColors.size()) return kColors[group];
  return fmt::format("hsl({},60%,{}%)", group * 360 / groups, group % 2 == 0 ? 48 : 62);
}

}  // namespace

std::vector<double> round_ticks(double low, double high, int count) {
  const double rough = (high - low) / count;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double nice : {1.0, 2.0, 5.0}) {
    if (nice * power >= rough * (1 - 1e-9)) {
      step = nice * power;
      break;
    }
  }
  std::vector<double> ticks;
  for (double k = std::ceil(low / step - 1e-9); k * step <= high + step * 1e-9; ++k) ticks.push_back(k * step + 0.0);
  return ticks;
}

std::string line_chart(const std::string& title, const std::vector<ChartLine>& lines) {
  constexpr double kWidth = 560, kHeight = 220, kLeft = 58, kRight = 12, kTop = 10, kBottom = 28;
  Span x{INFINITY, -INFINITY}, y{INFINITY, -INFINITY};
  for (const ChartLine& line : lines) {
    for (const CurvePoint& p : line.points) {
      x = {std::min(x.low, p.step), std::max(x.high, p.step)};
      y = {std::min(y.low, p.value), std::max(y.high, p.value)};
    }
  }
  x = span_of(x.low, x.high);
  y = span_of(y.low, y.high);
  const auto at_x = [&](double v) { return kLeft + (v - x.low) / (x.high - x.low) * (kWidth - kLeft - kRight); };
  const auto at_y = [&](double v) {
    return kHeight - kBottom - (v - y.low) / (y.high - y.low) * (kHeight - kTop - kBottom);
  };
  std::string svg =
      fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">", kWidth, kHeight, escape_html(title));
  for (const double tick : round_ticks(y.low, y.high, 4)) {
    svg += fmt::format(
        "<path class=\"grid\" d=\"M{} {:.1f}H{}\"/><text class=\"tick\" x=\"{}\" y=\"{:.1f}\" "
        "text-anchor=\"end\">{}</text>",
        kLeft, at_y(tick), kWidth - kRight, kLeft - 6, at_y(tick) + 4, tick_text(tick));
  }
  for (const double tick : round_ticks(x.low, x.high, 6)) {
    svg += fmt::format("<text class=\"tick\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>", at_x(tick),
                       kHeight - 10, tick_text(tick));
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto& points = lines[i].points;
    std::string path;
    for (size_t k = 0; k < points.size(); ++k)
      path += fmt::format("{}{:.1f} {:.1f}", k == 0 ? "M" : "L", at_x(points[k].step), at_y(points[k].value));
    svg += fmt::format("<path class=\"line\" stroke=\"{}\" d=\"{}\"/>", kColors[i % kColors.size()], path);
    if (points.size() <= 40) {  // few enough to show each one
      std::string dots;
      for (const CurvePoint& p : points) dots += fmt::format("M{:.1f} {:.1f}h0", at_x(p.step), at_y(p.value));
      svg += fmt::format("<path class=\"dots\" stroke=\"{}\" d=\"{}\"/>", kColors[i % kColors.size()], dots);
    }
  }
  return svg + "</svg>" + [&] {
    if (lines.size() < 2) return std::string();
    std::string names = "<p class=\"legend\">";
    for (size_t i = 0; i < lines.size(); ++i)
      names += fmt::format("<span><i style=\"background:{}\"></i>{}</span> ", kColors[i % kColors.size()],
                           escape_html(lines[i].name));
    return names + "</p>";
  }();
}

std::string point_map(const std::string& title, const std::vector<MapGroup>& groups) {
  constexpr double kSide = 460, kMargin = 10;
  std::array<Span, 2> spans = {Span{INFINITY, -INFINITY}, Span{INFINITY, -INFINITY}};
  for (const MapGroup& group : groups)
    for (const auto& point : group.points)
      for (size_t a = 0; a < 2; ++a) spans[a] = {std::min(spans[a].low, point[a]), std::max(spans[a].high, point[a])};
  // The same scale on both axes, so that distances compare in every direction.
  const double range = std::max({spans[0].high - spans[0].low, spans[1].high - spans[1].low, 1e-12});
  const double scale = (kSide - 2 * kMargin) / range;
  const auto place = [&](double v, size_t a) {
    return kSide / 2 + (v - (spans[a].low + spans[a].high) / 2) * (a == 0 ? scale : -scale);
  };
  std::string svg =
      fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">", kSide, kSide, escape_html(title));
  std::string names;
  for (size_t g = 0; g < groups.size(); ++g) {
    const std::string color = color_of(g, groups.size());
    std::string path;
    for (const auto& point : groups[g].points)
      path += fmt::format("M{:.1f} {:.1f}h0", place(point[0], 0), place(point[1], 1));
    svg += fmt::format("<path class=\"points\" stroke=\"{}\" d=\"{}\"/>", color, path);
    names += fmt::format("<span><i style=\"background:{}\"></i>{}</span> ", color, escape_html(groups[g].name));
  }
  svg += "</svg>";
  if (groups.size() > 1 && groups.size() <= kMostNamedGroups) svg += "<p class=\"legend\">" + names + "</p>";
  return svg;
}

}  // namespace simclr
