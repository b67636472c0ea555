#include "src/report/evaluation_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/report/features.h"
#include "src/report/html.h"
#include "src/report/images.h"
#include "src/report/svg.h"

namespace simclr {
namespace {

constexpr int64_t kQueries = 8, kNeighbors = 4;
constexpr int64_t kSide = 64;  // pixels; 8 * 5 images of 64 x 64 take less than 0.6 MB
constexpr int64_t kMostPoints = 2000;

// At most `most` numbers out of [0, count): one from each of equal parts, at a position that shifts from part to part,
// so that no class is left out whether classes are sorted or alternate.
std::vector<int64_t> spread(int64_t count, int64_t most) {
  std::vector<int64_t> chosen(std::min(count, most));
  const int64_t parts = std::ssize(chosen);
  for (int64_t i = 0; i < parts; ++i) {
    const int64_t begin = i * count / parts, size = (i + 1) * count / parts - begin;
    chosen[i] = begin + (i + i / size) % size;
  }
  return chosen;
}

std::string label_of(const Dataset& dataset, int64_t i) {
  if (!dataset.has_labels()) return fmt::format("image {}", i);
  return dataset.class_names()[dataset.label(i)];
}

std::string cell(const RgbImage& image, const std::string& alternative_text, const std::string& label,
                 const std::string& note) {
  return fmt::format("<div class=\"cell\">{}<span>{}</span><span class=\"dim\">{}</span></div>",
                     image_tag(image, alternative_text), escape_html(label), escape_html(note));
}

void add_neighbors(const EvaluationFeatures& f, EvaluationView& view, const Beat& beat) {
  std::vector<uint8_t> storage;
  view.html += fmt::format(
      "<h2>Nearest neighbors</h2>\n<p class=\"dim\">Test images and their nearest training images by cosine similarity "
      "of the features, after step {}.{}</p>\n<div class=\"rows\">",
      f.step, f.test_set.has_labels() ? " ✓: same class." : "");
  for (const int64_t query : spread(f.test_set.count(), kQueries)) {
    std::vector<RgbImage>& row = view.rows.emplace_back();
    row.push_back(fit_into_square(f.test_set.image(query, storage), kSide));
    const std::string label = label_of(f.test_set, query);
    view.html += "<div class=\"row\">" + cell(row.back(), fmt::format("test image {}: {}", query, label), label, "");
    for (const Neighbor& neighbor : nearest_rows(f.bank, f.queries, query, kNeighbors)) {
      row.push_back(fit_into_square(f.bank_set.image(neighbor.row, storage), kSide));
      const std::string its = label_of(f.bank_set, neighbor.row);
      const bool same = f.test_set.has_labels() && f.bank_set.has_labels() && its == label;
      view.html += cell(row.back(), fmt::format("neighbor {}: {}", neighbor.row, its), its,
                        fmt::format("{:.2f}{}", neighbor.cosine, same ? " ✓" : ""));
    }
    view.html += "</div>\n";
    beat();
  }
  view.html += "</div>\n";
}

void add_map(const EvaluationFeatures& f, EvaluationView& view, const Beat& beat) {
  const std::vector<int64_t> rows = spread(f.test_set.count(), kMostPoints);
  const PlaneMap map = principal_plane(f.queries, rows, beat);
  const bool labels = f.test_set.has_labels();
  std::vector<MapGroup> groups;
  if (!labels) groups.push_back({.name = "test images", .points = {}});
  for (const std::string& name : labels ? f.test_set.class_names() : std::vector<std::string>())
    groups.push_back({.name = name, .points = {}});
  for (size_t i = 0; i < rows.size(); ++i)
    groups[labels ? f.test_set.label(rows[i]) : 0].points.push_back(map.points[i]);
  view.html += fmt::format(
      "<h2>Map of the test features</h2>\n<p class=\"dim\">{} test images on the first two principal components of "
      "their features, which explain {:.0f} % and {:.0f} % of the variance{}.</p>\n<figure class=\"plane\">{}</figure>",
      rows.size(), 100 * map.explained[0], 100 * map.explained[1],
      !labels                             ? ""
      : groups.size() <= kMostNamedGroups ? ", colored by class"
                                          : fmt::format(", colored by class ({} classes)", groups.size()),
      point_map("map of the test features", groups));
}

}  // namespace

EvaluationView view_evaluation(const EvaluationFeatures& features, const Beat& beat) {
  EvaluationView view;
  if (features.test_set.count() == 0) return view;
  add_neighbors(features, view, beat);
  add_map(features, view, beat);
  return view;
}

}  // namespace simclr
