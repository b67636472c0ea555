#include "src/config/loader.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "kernels/common/error.h"
#include "src/config/config_errors.h"
#include "src/config/key_table.h"
#include "src/config/text_file.h"
#include "src/config/validator.h"

namespace simclr {

namespace {

// Records the line at which each document of a stream begins; ignores everything else.
class DocumentStarts final : public YAML::EventHandler {
 public:
  std::vector<int> lines;
  void OnDocumentStart(const YAML::Mark& mark) override { lines.push_back(mark.line + 1); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

struct Document {
  YAML::Node root;
  int second_line = 0;  // where a second document, or text outside of any document, begins; 0: there is none
};

// Throws YAML::Exception. Not YAML::LoadAll, which returns documents endlessly at a stray ",".
Document parse_yaml(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStarts starts;
  if (parser.HandleNextDocument(starts)) parser.HandleNextDocument(starts);
  return {.root = YAML::Load(text), .second_line = starts.lines.size() > 1 ? starts.lines[1] : 0};
}

// The state of one load. invalid: keys whose value was refused, so that no rule draws conclusions from it.
struct Loading {
  Settings settings;
  KeyOrigins origins;
  ConfigErrors errors;
  std::set<std::string, std::less<>> invalid;
};

int line_of(const YAML::Node& node) {
  return node.Mark().line + 1;
}

// "!" marks quoted scalars, "?" and "" plain ones; any other tag was written in the file.
bool has_explicit_tag(const YAML::Node& node) {
  const std::string& tag = node.Tag();
  return !tag.empty() && tag != "?" && tag != "!";
}

std::string tag_problem(const YAML::Node& node) {
  return fmt::format("found the YAML tag {}; remove it", shown(node.Tag()));
}

ConfigValue to_value(const YAML::Node& node) {
  if (node.IsScalar()) {
    return {.kind = ConfigValue::Kind::kScalar, .text = node.Scalar(), .quoted = node.Tag() == "!"};
  }
  if (node.IsMap()) return {.kind = ConfigValue::Kind::kSection};
  if (!node.IsSequence()) return {.kind = ConfigValue::Kind::kNull};
  ConfigValue value = {.kind = ConfigValue::Kind::kList};
  for (const YAML::Node& item : node) {
    // No key takes a list of lists, so inner lists are not read (an alias may make them infinite).
    value.items.push_back(item.IsSequence() ? ConfigValue{.kind = ConfigValue::Kind::kList} : to_value(item));
  }
  return value;
}

void assign_key(const Key& key, const YAML::Node& node, const std::string& where, Loading& loading) {
  std::string problem;
  if (has_explicit_tag(node)) {
    problem = tag_problem(node);
  } else {
    problem = key.assign(to_value(node), loading.settings);
  }
  if (problem.empty()) {
    loading.origins[key.path] = where;
    return;
  }
  loading.invalid.insert(key.path);
  loading.errors.add(where, key.path, fmt::format("{}; expected {}", problem, key.description()));
}

std::string unknown_key_text(const std::string& path, bool is_map) {
  if (find_key(path) != nullptr || is_section(path))
    return "a dotted key is not supported in a file; nest the sections, e.g. train: {epochs: 10}";
  return fmt::format("unknown {}; did you mean {}?", is_map ? "section" : "key", nearest_key(path, is_map));
}

// prefix is "" or "train.". The recursion is as deep as the key table, independent of the file.
void read_section(const YAML::Node& map, const std::string& prefix, const std::string& file, Loading& loading) {
  std::map<std::string, int> lines;
  for (const auto& pair : map) {
    const std::string where = fmt::format("{}:{}", file, line_of(pair.first));
    if (!pair.first.IsScalar()) {
      loading.errors.add(where, "", "the key is not a scalar; write key: value");
      continue;
    }
    const std::string name = pair.first.Scalar();
    const std::string path = prefix + name;
    const auto [first, is_new] = lines.emplace(name, line_of(pair.first));
    if (!is_new) {
      loading.errors.add(where, shown(path), fmt::format("given twice, first on line {}; keep one", first->second));
    } else if (name == "<<") {
      loading.errors.add(where, shown(path), "merge keys (<<) are not supported; write the keys out");
    } else if (name.find('.') != std::string::npos || (find_key(path) == nullptr && !is_section(path))) {
      const std::string text = loading.errors.is_full() ? "" : unknown_key_text(path, pair.second.IsMap());
      loading.errors.add(where, shown(path), text);
    } else if (const Key* key = find_key(path)) {
      assign_key(*key, pair.second, where, loading);
    } else if (pair.second.IsMap() && !has_explicit_tag(pair.second)) {
      read_section(pair.second, path + ".", file, loading);
    } else if (has_explicit_tag(pair.second)) {
      loading.errors.add(where, path, tag_problem(pair.second));
    } else {
      const std::string problem = found(to_value(pair.second));
      loading.errors.add(where, path, problem + "; expected a section with keys ({} for all defaults)");
    }
  }
}

void read_document(std::string_view text, const std::string& file, Loading& loading) {
  const std::string clean = clean_text(text, file, loading.errors);
  if (!loading.errors.empty()) return;
  Document document;
  try {
    document = parse_yaml(clean);
  } catch (const YAML::Exception& error) {
    loading.errors.add(fmt::format("{}:{}", file, error.mark.line + 1), "",
                       fmt::format("not valid YAML: {} (column {})", shown(error.msg), error.mark.column + 1));
    return;
  }
  const YAML::Node& root = document.root;
  if (document.second_line > 0) {
    loading.errors.add(fmt::format("{}:{}", file, document.second_line), "",
                       "a second YAML document or stray text begins here; keep a single document");
  } else if (!root.IsDefined() || root.IsNull()) {
    loading.errors.add(file, "", "contains no settings; write {} to use all defaults");
  } else if (has_explicit_tag(root)) {
    loading.errors.add(fmt::format("{}:{}", file, line_of(root)), "", tag_problem(root));
  } else if (!root.IsMap()) {
    loading.errors.add(fmt::format("{}:{}", file, line_of(root)), "",
                       found(to_value(root)) + " at the top level; expected sections, e.g. train: {epochs: 10}");
  } else {
    read_section(root, "", file, loading);
  }
}

// YAML ends a plain scalar at " #". An override with one must be quoted, or its end would be dropped silently.
std::string comment_problem(const YAML::Node& node, std::string_view text) {
  if (!node.IsScalar() || node.Tag() == "!" || text.find(" #") == std::string_view::npos) return "";
  return fmt::format("found {}, since \" #\" starts a comment in YAML; quote the value", shown(node.Scalar()));
}

// "section.key" of "section.key=value"; all of a text without "=".
std::string_view key_of(std::string_view argument) {
  return argument.substr(0, argument.find('='));
}

bool is_repeated_after(const std::vector<std::string>& overrides, size_t index) {
  return std::any_of(overrides.begin() + index + 1, overrides.end(),
                     [&](const std::string& later) { return key_of(later) == key_of(overrides[index]); });
}

void read_override(const std::string& argument, Loading& loading) {
  const std::string where = "--set";
  const size_t equals = argument.find('=');
  if (equals == std::string::npos || equals == 0) {
    loading.errors.add(where, "", fmt::format("found {}; expected section.key=value", shown(argument)));
    return;
  }
  const std::string path = argument.substr(0, equals);
  const std::string text = argument.substr(equals + 1);
  const Key* key = find_key(path);
  if (key == nullptr) {
    const std::string problem = is_section(path) ? "is a section; set its keys one by one, as section.key=value"
                                                 : fmt::format("unknown key; did you mean {}?", nearest_key(path));
    loading.errors.add(where, shown(path), problem);
    return;
  }
  ConfigErrors text_errors;
  if (text.size() > kMaxConfigBytes || clean_text(text, "", text_errors) != text || !text_errors.empty() ||
      text.find('\n') != std::string::npos) {
    loading.errors.add(where, path, fmt::format("found {}; expected one line of UTF-8 text", shown(text)));
    return;
  }
  try {
    const Document document = parse_yaml(text);
    const YAML::Node& node = document.root;
    if (document.second_line > 0) {
      loading.invalid.insert(key->path);
      loading.errors.add(where, path, fmt::format("found {}, which is not a single YAML value; quote it", shown(text)));
    } else if (const std::string problem = comment_problem(node, text); !problem.empty()) {
      loading.invalid.insert(key->path);
      loading.errors.add(where, path, problem);
    } else {
      assign_key(*key, node, where, loading);
    }
  } catch (const YAML::Exception& error) {
    loading.invalid.insert(key->path);
    loading.errors.add(where, path, fmt::format("found {}, not valid YAML: {}", shown(text), shown(error.msg)));
  }
}

// The last override of a key counts, so that a script can append its own to those it was called with.
void read_overrides(const std::vector<std::string>& overrides, Loading& loading) {
  for (size_t i = 0; i < overrides.size(); ++i)
    if (!is_repeated_after(overrides, i)) read_override(overrides[i], loading);
}

}  // namespace

std::vector<std::string> ignored_overrides(const std::vector<std::string>& overrides) {
  std::vector<std::string> ignored;
  for (size_t i = 0; i < overrides.size(); ++i)
    if (is_repeated_after(overrides, i))
      ignored.push_back(fmt::format("--set {}: ignored, a later --set has the same key", shown(overrides[i])));
  return ignored;
}

Settings settings_from_string(std::string_view text, const std::string& origin,
                              const std::vector<std::string>& overrides, KeyOrigins* origins) {
  Loading loading;
  read_document(text, shown_path(origin), loading);
  read_overrides(overrides, loading);
  find_errors(loading.settings, loading.origins, loading.invalid, loading.errors);
  loading.errors.raise_if_any();
  if (origins != nullptr) *origins = std::move(loading.origins);
  return loading.settings;
}

Settings change_settings(const Settings& base, const std::string& base_origin, const std::string& path,
                         const std::vector<std::string>& overrides, KeyOrigins* given) {
  Loading loading{.settings = base, .origins = {}, .errors = {}, .invalid = {}};
  if (!path.empty()) read_document(read_text_file(path), shown_path(path), loading);
  read_overrides(overrides, loading);
  if (given != nullptr) *given = loading.origins;
  for (const Key& key : all_keys()) loading.origins.try_emplace(key.path, shown_path(base_origin));
  find_errors(loading.settings, loading.origins, loading.invalid, loading.errors);
  loading.errors.raise_if_any();
  return loading.settings;
}

Settings load_settings(const std::string& path, const std::vector<std::string>& overrides, KeyOrigins* origins) {
  return settings_from_string(read_text_file(path), path, overrides, origins);
}

}  // namespace simclr
