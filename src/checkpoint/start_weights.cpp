#include "src/checkpoint/start_weights.h"

#include <algorithm>
#include <cmath>

#include "kernels/common/error.h"
#include "src/checkpoint/training_state.h"

namespace simclr {
namespace {

constexpr std::string_view kProjector = "projector.", kCounter = ".num_batches_tracked", kClassifier = "fc.";
constexpr size_t kMostListed = 6;

// "missing in the file: a, b and 12 more"
class Problems {
 public:
  void add(std::string_view title, const std::vector<std::string>& items) {
    if (items.empty()) return;
    text_ += fmt::format("{}{}: ", text_.empty() ? "" : "; ", title);
    for (size_t i = 0; i < std::min(items.size(), kMostListed); ++i) text_ += (i == 0 ? "" : ", ") + items[i];
    if (items.size() > kMostListed) text_ += fmt::format(" and {} more", items.size() - kMostListed);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

bool is_ignored(std::string_view name) {
  return !is_weight(name) || name.ends_with(kCounter) || name.starts_with(kClassifier);
}

// The tensors to read from the file.
std::vector<NamedTensor> wanted_of(std::span<const NamedTensor> tensors, bool projector) {
  std::vector<NamedTensor> wanted;
  for (const NamedTensor& t : tensors)
    if (is_weight(t.name) && (projector || !t.name.starts_with(kProjector))) wanted.push_back(t);
  return wanted;
}

void require_fit(const SafetensorsFile& file, const std::vector<NamedTensor>& wanted) {
  std::vector<std::string> missing, different, extra;
  bool projector = false;  // a tensor of the projector does not fit
  for (const NamedTensor& t : wanted) {
    const SafetensorsEntry* entry = file.find(t.name);
    if (entry && entry->type == t.type && entry->shape == t.shape) continue;
    projector = projector || t.name.starts_with(kProjector);
    if (!entry)
      missing.push_back(t.name);
    else
      different.push_back(fmt::format("{} ({} {} in the file, {} {} expected)", t.name, name_of(entry->type),
                                      format_shape(entry->shape), name_of(t.type), format_shape(t.shape)));
  }
  for (const SafetensorsEntry& entry : file.entries()) {
    if (is_ignored(entry.name)) continue;
    const bool known = std::any_of(wanted.begin(), wanted.end(), [&](const auto& t) { return t.name == entry.name; });
    if (known) continue;
    extra.push_back(entry.name);
    projector = projector || entry.name.starts_with(kProjector);
  }
  Problems problems;
  problems.add("different", different);
  problems.add("missing in the file", missing);
  problems.add("only in the file", extra);
  if (problems.text().empty()) return;
  fail(ExitCode::kOutput,
       "model.init_from: {} does not match the configured network: {}; set model.encoder{} as in the run that wrote "
       "it{}",
       file.path().string(), problems.text(), projector ? " and model.projector" : "",
       projector ? ", or use its encoder alone (simclr_train export)" : ", or name another file");
}

void require_finite(const std::filesystem::path& path, const NamedTensor& t) {
  const auto* values = static_cast<const float*>(t.data);
  if (std::all_of(values, values + elements_of(t.shape), [](float v) { return std::isfinite(v); })) return;
  fail(ExitCode::kOutput, "model.init_from: {}: a value of {} is not finite; name another file", path.string(), t.name);
}

}  // namespace

StartWeights load_start_weights(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                                const Beat& beat) {
  const SafetensorsFile file(path);
  if (file.has_checksum()) file.verify_checksum(beat);
  StartWeights start;
  for (const SafetensorsEntry& entry : file.entries()) {
    start.projector = start.projector || entry.name.starts_with(kProjector);
    if (entry.name.starts_with(kClassifier)) start.left_out.push_back(entry.name);
  }
  const std::vector<NamedTensor> wanted = wanted_of(tensors, start.projector);
  require_fit(file, wanted);
  for (const NamedTensor& t : wanted) {
    file.read(*file.find(t.name), t.data, beat);
    require_finite(path, t);
  }
  start.sha256 = weights_sha256(wanted, beat);
  return start;
}

}  // namespace simclr
