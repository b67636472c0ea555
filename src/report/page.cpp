#include "src/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "src/report/html.h"
#include "src/report/svg.h"

namespace simclr {
namespace {

constexpr std::string_view kStyle = R"(
:root{color-scheme:light dark;--text:#1d2129;--dim:#5b6472;--back:#fff;--card:#f5f6f8;--rule:#d9dde3}
@media(prefers-color-scheme:dark){:root{--text:#e4e7ec;--dim:#9aa4b2;--back:#14171c;--card:#1d2128;--rule:#363c46}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1180px;padding:1.5rem 1.25rem 4rem;background:var(--back);color:var(--text);
font:15px/1.5 system-ui,sans-serif}
h1{margin:0;font-size:1.7rem;overflow-wrap:anywhere}h2{margin:2.2rem 0 .7rem;font-size:1.15rem}
p{margin:.3rem 0}.dim,figcaption small{color:var(--dim)}
.tiles{display:flex;flex-wrap:wrap;gap:.75rem;margin-top:1rem}
.tile{background:var(--card);border-radius:8px;padding:.55rem .9rem;min-width:8rem}
.tile b{display:block;font-size:1.25rem;font-variant-numeric:tabular-nums}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,440px),1fr));gap:1rem}
figure{margin:0;background:var(--card);border-radius:8px;padding:.7rem .8rem}
figcaption{font-weight:600;display:flex;justify-content:space-between;gap:1rem}figcaption small{font-weight:400}
svg{display:block;width:100%;height:auto}
.plane{display:flex;flex-wrap:wrap;gap:1rem}.plane svg{flex:0 1 540px;min-width:0}
.plane .legend{flex-direction:column;font-size:.9rem}
.grid{stroke:var(--rule);stroke-width:1}.tick{fill:var(--dim);font-size:11px;font-family:system-ui,sans-serif}
.line{fill:none;stroke-width:1.8;stroke-linejoin:round}.dots{stroke-width:5;stroke-linecap:round}
.points{stroke-width:4.5;stroke-linecap:round;stroke-opacity:.75}
.legend{display:flex;flex-wrap:wrap;gap:.2rem .9rem;font-size:.85rem}
.legend i{display:inline-block;width:.75em;height:.75em;border-radius:50%;margin-right:.35em}
.rows{display:flex;flex-wrap:wrap;gap:1rem 2rem}.row{display:flex;gap:.4rem;align-items:flex-start}
.row>:first-child{margin-right:.7rem}
.cell{width:70px;font-size:.7rem;line-height:1.3;overflow-wrap:anywhere}.cell b,.cell span{display:block}
.cell img{display:block;border-radius:3px;image-rendering:pixelated}
table{border-collapse:collapse}th,td{text-align:left;vertical-align:top;padding:.25rem .8rem .25rem 0;
border-top:1px solid var(--rule);overflow-wrap:anywhere}th{font-weight:600;white-space:nowrap}
pre{background:var(--card);border-radius:8px;padding:.8rem;overflow:auto;font-size:.85rem}
)";

struct ChartKind {
  std::string title;
  std::vector<std::pair<std::string, std::string>> curves;  // name in metrics.jsonl, name for people
  bool percent = false;                                     // values are shares
};

const std::vector<ChartKind>& known_charts() {
  static const std::vector<ChartKind> charts = {
      {"Loss", {{"loss", "loss"}}},
      {"k-NN accuracy", {{"knn_top1", "top-1"}, {"knn_top5", "top-5"}}, true},
      {"Learning rate", {{"lr", "learning rate"}}},
      {"Share of the step time spent waiting for images", {{"wait_share", "share"}}, true},
      {"Gradient norm", {{"grad_norm", "gradient norm"}}},
      {"Alignment (lower: the views of an image are closer)", {{"alignment", "alignment"}}},
      {"Uniformity (lower: embeddings are spread wider)", {{"uniformity", "uniformity"}}},
      {"Effective rank of the embeddings", {{"effective_rank", "effective rank"}}},
      {"Images per second", {{"images_per_s", "images per second"}}},
  };
  return charts;
}

std::string chart(const RunHistory& history, const ChartKind& kind) {
  std::vector<ChartLine> lines;
  double last = 0, last_step = 0;
  for (const auto& [key, name] : kind.curves) {
    const auto curve = history.curves().find(key);
    if (curve == history.curves().end()) continue;
    const double scale = kind.percent ? 100 : 1;
    if (lines.empty()) {
      last = scale * curve->second.last();
      last_step = curve->second.last_step();
    }
    lines.push_back({name, curve->second.points()});
    for (CurvePoint& point : lines.back().points) point.value *= scale;
  }
  if (lines.empty()) return "";
  const std::string number = kind.percent ? fmt::format("{:.1f} %", last) : fmt::format("{:.4g}", last);
  const std::string last_text = fmt::format("{} at step {:.0f}", number, last_step);
  return fmt::format("<figure><figcaption>{}<small>{}</small></figcaption>{}</figure>\n",
                     escape_html(kind.title + (kind.percent ? ", %" : "")), last_text,
                     line_chart(fmt::format("{} over steps, last value {}", kind.title, last_text), lines));
}

std::string charts(const RunHistory& history) {
  std::set<std::string> done = {"epoch", "data_wait_s"};
  std::string html;
  for (const ChartKind& kind : known_charts()) {
    html += chart(history, kind);
    for (const auto& curve : kind.curves) done.insert(curve.first);
  }
  for (const auto& entry : history.curves())
    if (!done.contains(entry.first)) html += chart(history, {entry.first, {{entry.first, entry.first}}});
  return html.empty() ? "<p class=\"dim\">No steps logged yet.</p>" : "<div class=\"charts\">" + html + "</div>";
}

std::string tile(std::string_view head, std::string_view value) {
  return fmt::format("<div class=\"tile\"><span class=\"dim\">{}</span><b>{}</b></div>", head, escape_html(value));
}

std::string tiles(const ReportPage& page) {
  std::string html = tile("State", page.state);
  html += tile("Step", page.total_steps > 0 ? fmt::format("{} of {}", page.step, page.total_steps)
                                            : fmt::format("{}", page.step));
  constexpr std::array<std::array<const char*, 3>, 3> kNumbers = {{{"loss", "Loss", "{:.4f}"},
                                                                   {"knn_top1", "k-NN top-1", "{:.1f} %"},
                                                                   {"images_per_s", "Images per second", "{:.0f}"}}};
  for (const auto& [key, head, format] : kNumbers) {
    const auto curve = page.history.curves().find(key);
    if (curve == page.history.curves().end()) continue;
    const double value = curve->second.last() * (std::string_view(key) == "knn_top1" ? 100 : 1);
    html += tile(head, fmt::format(fmt::runtime(format), value));
  }
  return html;
}

// Marks a part, so that parts_of() finds it. Text from outside is escaped and cannot contain a mark.
std::string marked(std::string_view name, const std::string& part) {
  return part.empty() ? "" : fmt::format("<!--part {0}-->{1}<!--end {0}-->\n", name, part);
}

std::string find_marked(std::string_view html, std::string_view name) {
  const std::string begin = fmt::format("<!--part {}-->", name), end = fmt::format("<!--end {}-->", name);
  const size_t from = html.find(begin);
  const size_t to = from == html.npos ? from : html.find(end, from);
  if (to == html.npos) return "";
  return std::string(html.substr(from + begin.size(), to - from - begin.size()));
}

}  // namespace

std::string render(const ReportPage& page) {
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src "
      "'unsafe-inline'\">\n<title>{0}</title><style>{1}</style></head>\n<body><main>\n<h1>{0}</h1>\n"
      "<p class=\"dim\">Updated {2}</p>\n<div class=\"tiles\">{3}</div>\n<h2>Curves</h2>\n{4}\n",
      escape_html(page.name), kStyle, escape_html(page.time), tiles(page), charts(page.history));
  html += marked("evaluation", page.parts.evaluation);
  html += marked("pairs", page.parts.pairs);
  html += marked("facts", page.parts.facts);
  html += fmt::format("<h2>Configuration</h2>\n<details><summary>config.yaml</summary><pre>{}</pre></details>\n",
                      escape_html(page.config_yaml));
  return html + "</main></body></html>\n";
}

ReportParts parts_of(std::string_view html) {
  return {.facts = find_marked(html, "facts"),
          .pairs = find_marked(html, "pairs"),
          .evaluation = find_marked(html, "evaluation")};
}

std::string facts_part(const std::vector<std::string>& lines) {
  std::string html = "<h2>Run and machine</h2>\n<table>";
  for (const std::string& line : lines) {
    const size_t colon = line.find(": ");
    const std::string head = colon == line.npos ? "program" : line.substr(0, colon);
    html += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escape_html(head),
                        escape_html(colon == line.npos ? line : line.substr(colon + 2)));
  }
  return html + "</table>";
}

std::string pairs_part(const std::vector<AugmentedPair>& pairs) {
  std::string html =
      "<h2>Augmented views</h2>\n<p class=\"dim\">Images of the first step, each with its two views.</p>\n"
      "<div class=\"rows\">";
  for (const AugmentedPair& pair : pairs) {
    html += "<div class=\"row\">";
    html += fmt::format("<div class=\"cell\">{}</div>",
                        image_tag(pair.original, fmt::format("training image {}", pair.sample)));
    for (size_t v = 0; v < 2; ++v)
      html += fmt::format("<div class=\"cell\">{}</div>", image_tag(pair.views[v], fmt::format("view {}", v + 1)));
    html += "</div>\n";
  }
  return html + "</div>";
}

}  // namespace simclr
