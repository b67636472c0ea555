#include "src/commands/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <filesystem>
#include <vector>

#include "kernels/common/error.h"
#include "src/augment/normalization.h"
#include "src/checkpoint/checkpoint_store.h"
#include "src/checkpoint/training_state.h"
#include "src/config/enum_names.h"
#include "src/config/loader.h"

namespace simclr {
namespace {

constexpr std::string_view kProjector = "projector.", kMean = ".running_mean";

void require_finite(const SafetensorsFile& file, const NamedTensor& t) {
  if (t.type != TensorType::kFloat32) return;
  const auto* values = static_cast<const float*>(t.data);
  if (std::all_of(values, values + elements_of(t.shape), [](float v) { return std::isfinite(v); })) return;
  fail(ExitCode::kDiverged,
       "{}: a value of {} is not finite: the training of this encoder has diverged; use an earlier checkpoint",
       file.path().string(), t.name);
}

// Tensors that own their memory; read() refuses values that are not finite.
class OwnTensors {
 public:
  void read(const SafetensorsFile& file, const SafetensorsEntry& entry) {
    auto& memory = memory_.emplace_back(entry.end - entry.begin);
    file.read(entry, memory.data());
    tensors_.push_back({entry.name, entry.type, entry.shape, memory.data()});
    require_finite(file, tensors_.back());
  }
  void add_count(const std::string& name, int64_t count) {
    auto& value = counts_.emplace_back(count);
    tensors_.push_back({name, TensorType::kInt64, {}, &value});
  }
  const std::vector<NamedTensor>& all() const { return tensors_; }

 private:
  std::deque<std::vector<char>> memory_;
  std::deque<int64_t> counts_;
  std::vector<NamedTensor> tensors_;
};

std::string list_of(const std::array<float, 3>& values) {
  return fmt::format("[{}, {}, {}]", values[0], values[1], values[2]);
}

std::map<std::string, std::string> metadata_of(const std::filesystem::path& source, const CheckpointHeader& header,
                                               const Settings& settings, const std::string& weights_sha256) {
  const EncoderSettings& encoder = settings.model.encoder;
  std::map<std::string, std::string> metadata = {
      {"format", "pt"},  // required by the safetensors library of Python
      {"encoder", fmt::format("resnet{}", encoder.depth)},
      {"stem", std::string(enum_name(encoder.stem))},
      {"depth", std::to_string(encoder.depth)},
      {"width", std::to_string(encoder.width)},
      {"image_size", std::to_string(settings.data.image_size)},
      {"source", source.filename().string()},
      {"step", std::to_string(header.step)},
      {"weights_sha256", weights_sha256},
      {"config", header.config_yaml},
  };
  const auto normalization = header.environment.find(kNormalizationKey);
  ViewParams view;
  if (normalization != header.environment.end() && read_normalization(normalization->second, view)) {
    metadata["mean"] = list_of(view.mean);
    metadata["std"] = list_of({1 / view.inverse_std[0], 1 / view.inverse_std[1], 1 / view.inverse_std[2]});
  }
  return metadata;
}

}  // namespace

std::string export_encoder(const ExportCommand& command) {
  const SafetensorsFile file = open_checkpoint(command.checkpoint);
  const std::filesystem::path& path = file.path();
  std::error_code not_there;
  if (std::filesystem::equivalent(path, command.output, not_there))
    fail(ExitCode::kUsage, "export: --output {} is the checkpoint itself; give another file", command.output);
  const CheckpointHeader header = read_checkpoint_header(file);
  file.verify_checksum();
  const Settings settings = settings_from_string(header.config_yaml, path.string());
  const EncoderSettings& encoder = settings.model.encoder;
  const int64_t passes = settings.model.batch_norm.views == BatchNormViews::kSeparate ? 2 : 1;

  OwnTensors tensors;
  for (const SafetensorsEntry& entry : file.entries()) {
    if (!is_weight(entry.name) || (!command.include_projector && entry.name.starts_with(kProjector))) continue;
    tensors.read(file, entry);
    if (entry.name.ends_with(kMean)) {
      const std::string norm = entry.name.substr(0, entry.name.size() - kMean.size());
      tensors.add_count(norm + ".num_batches_tracked", passes * header.step);
    }
  }
  write_safetensors(command.output, metadata_of(path, header, settings, weights_sha256(file)), tensors.all());
  return fmt::format("{}: ResNet-{} width {} ({} stem){} after step {}, {} tensors\n", command.output, encoder.depth,
                     encoder.width, enum_name(encoder.stem), command.include_projector ? " with its projector" : "",
                     header.step, tensors.all().size());
}

}  // namespace simclr
