#include "src/config/resolved.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "kernels/common/error.h"
#include "kernels/common/numbers.h"
#include "src/config/enum_names.h"
#include "src/config/key_table.h"

namespace simclr {
namespace {

LossAlgorithm resolved_algorithm(const LossSettings& loss, bool on_gpu) {
  if (loss.algorithm != LossAlgorithm::kAuto) return loss.algorithm;
  return on_gpu ? LossAlgorithm::kEinsum : LossAlgorithm::kStreaming;
}

// The derived value that print_config() shows as a comment after a key; "" if there is none.
std::string derived_comment(const std::string& path, const Settings& s) {
  const bool ordered = s.train.reduction == Reduction::kOrdered, infonce = s.loss.type == LossType::kInfoNce;
  if (path == "optimizer.base_lr") return fmt::format("scaled: {}", scaled_learning_rate(s));
  if (!infonce && (path == "loss.algorithm" || path == "loss.temperature")) return "not used by type: barlow_twins";
  if (infonce && (path == "loss.lambda" || path == "loss.scale")) return "not used by type: infonce";
  if (path == "loss.algorithm" && s.loss.algorithm == LossAlgorithm::kAuto) {
    return fmt::format("{} on a CPU, {} on a GPU", enum_name(resolved_algorithm(s.loss, false)),
                       enum_name(resolved_algorithm(s.loss, true)));
  }
  if (path == "train.global_batch" && infonce) {
    return fmt::format("per anchor: 1 positive, {} negatives", 2 * s.train.global_batch - 2);
  }
  if (path == "train.shards" && !ordered) return "not used by reduction: fastest, which has one shard per rank";
  if (path == "train.shards") return fmt::format("{} images per shard", images_per_shard(s, 1));
  if (path == "train.epochs" && s.train.max_steps > 0) return "not used: train.max_steps is given";
  if (path == "views.normalize.mean" && s.views.normalize.mean.empty()) return "computed from the training images";
  return "";
}

// Writes the headings of the sections of path that previous is not in; returns the indentation inside.
std::string open_sections(const std::string& path, const std::string& previous, std::string& out) {
  std::string indentation;
  bool same = true;
  for (size_t begin = 0, dot = path.find('.'); dot != std::string::npos; begin = dot + 1, dot = path.find('.', begin)) {
    same = same && previous.starts_with(path.substr(0, dot + 1));
    if (!same) out += fmt::format("{}{}:\n", indentation, path.substr(begin, dot - begin));
    indentation += "  ";
  }
  return indentation;
}

std::string sha256_hex(std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  if (EVP_Digest(text.data(), text.size(), digest, &length, EVP_sha256(), nullptr) != 1) {
    fail(ExitCode::kOther, "OpenSSL cannot compute SHA-256; check whether its configuration disables it");
  }
  std::string hex;
  for (unsigned int i = 0; i < length; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

}  // namespace

double scaled_learning_rate(const Settings& settings) {
  const double batch = as_double(settings.train.global_batch);
  switch (settings.optimizer.lr_scaling) {
    case LrScaling::kNone:
      return settings.optimizer.base_lr;
    case LrScaling::kLinear:
      return settings.optimizer.base_lr * batch / 256.0;
    case LrScaling::kSqrt:
      return settings.optimizer.base_lr * std::sqrt(batch);
  }
  SIMCLR_CHECK(false, "lr_scaling has no value {}", static_cast<int>(settings.optimizer.lr_scaling));
  return 0.0;
}

Settings resolve_for_device(Settings settings, bool on_gpu) {
  if (settings.loss.type == LossType::kInfoNce) settings.loss.algorithm = resolved_algorithm(settings.loss, on_gpu);
  return settings;
}

int64_t shard_count(const Settings& settings, int ranks) {
  return settings.train.reduction == Reduction::kOrdered ? settings.train.shards : ranks;
}

int64_t images_per_shard(const Settings& settings, int ranks) {
  const int64_t shards = shard_count(settings, ranks);
  SIMCLR_CHECK(shards > 0 && settings.train.global_batch % shards == 0, "{} shards do not divide a batch of {}", shards,
               settings.train.global_batch);
  return settings.train.global_batch / shards;
}

std::string print_config(const Settings& settings) {
  std::string out;
  std::string previous;
  for (const Key& key : all_keys()) {
    const std::string indentation = open_sections(key.path, previous, out);
    const std::string name = key.path.substr(key.path.rfind('.') + 1);
    const std::string comment = derived_comment(key.path, settings);
    out +=
        fmt::format("{}{}: {}{}{}\n", indentation, name, key.print(settings), comment.empty() ? "" : "  # ", comment);
    previous = key.path;
  }
  return out;
}

std::string config_hash(const Settings& settings) {
  std::string text;
  for (const Key& key : all_keys()) {
    if (key.effect == KeyEffect::kMathematics) text += fmt::format("{}: {}\n", key.path, key.print(settings));
  }
  return sha256_hex(text);
}

std::vector<std::string> keys_named_by(const std::string& entry) {
  std::vector<std::string> by_path, by_last_word;
  for (const Key& key : all_keys()) {
    if (key.effect == KeyEffect::kExecution) continue;
    if (key.path == entry || key.path.starts_with(entry + ".")) by_path.push_back(key.path);
    if (key.path.ends_with("." + entry)) by_last_word.push_back(key.path);
  }
  return by_path.empty() ? by_last_word : by_path;
}

bool allows_other_images(const ResumeSettings& resume) {
  return std::find(resume.allow.begin(), resume.allow.end(), "data") != resume.allow.end();
}

std::vector<SettingDifference> compare_for_resume(const Settings& saved, const Settings& now) {
  std::vector<SettingDifference> differences;
  for (const Key& key : all_keys()) {
    if (key.effect == KeyEffect::kExecution || key.print(saved) == key.print(now)) continue;
    differences.push_back({.key = key.path, .saved = key.print(saved), .now = key.print(now)});
  }
  return differences;
}

}  // namespace simclr
