#include "src/config/config_options.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "kernels/common/error.h"
#include "src/config/config_errors.h"

namespace simclr {

void describe_config(CLI::App& app, ConfigSource& into, std::string_view needed_for) {
  app.add_option("--config", into.config,
                 fmt::format("Configuration file (configs/reference.yaml lists all keys); {}", needed_for))
      ->type_name("FILE");
  app.add_option("--set", into.overrides,
                 "Set one key, in YAML syntax: views.crop_scale=[0.08,1]; repeatable, the last of a key counts")
      ->type_name("section.key=value")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
}

bool same_file(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  std::error_code ignored;
  if (a == b || std::filesystem::equivalent(a, b, ignored)) return true;  // also two hard links
  // weakly_canonical leaves a relative path relative if nothing of it exists, so absolute() comes first.
  std::error_code unknown_a;
  std::error_code unknown_b;
  const auto real_a = std::filesystem::weakly_canonical(std::filesystem::absolute(a, unknown_a), unknown_a);
  const auto real_b = std::filesystem::weakly_canonical(std::filesystem::absolute(b, unknown_b), unknown_b);
  return !unknown_a && !unknown_b && real_a == real_b;  // a folder that cannot be read is reported on opening
}

void check_not_input(const std::string& written, std::initializer_list<std::string> inputs, std::string_view hint) {
  for (const std::string& read : inputs) {
    if (same_file(written, read))
      fail(ExitCode::kUsage, "the output would replace the input {}; give another path ({})", shown_path(read), hint);
  }
}

}  // namespace simclr
