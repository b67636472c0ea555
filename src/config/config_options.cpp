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

void check_not_input(const std::string& written, std::initializer_list<std::string> inputs, std::string_view hint) {
  std::error_code none_there;
  for (const std::string& read : inputs) {
    if (!written.empty() && !read.empty() &&
        (written == read || std::filesystem::equivalent(written, read, none_there)))
      fail(ExitCode::kUsage, "the output would replace the input {}; give another path ({})", shown_path(read), hint);
  }
}

}  // namespace simclr
