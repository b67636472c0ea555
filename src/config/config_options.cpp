#include "src/config/config_options.h"

#include <fmt/format.h>

namespace simclr {

void describe_config(CLI::App& app, ConfigSource& into, std::string_view needed_for) {
  app.add_option("--config", into.config,
                 fmt::format("The configuration (configs/reference.yaml lists all keys); {}", needed_for))
      ->type_name("FILE");
  app.add_option("--set", into.overrides, "Replace one key, written as in YAML: views.crop_scale=[0.08,1]; repeatable")
      ->type_name("section.key=value")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
}

}  // namespace simclr
