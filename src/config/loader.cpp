#include "src/config/loader.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <map>
#include <set>
#include <sstream>

#include "kernels/common/error.h"
#include "src/config/faults.h"
#include "src/config/key_table.h"
#include "src/config/text_file.h"
#include "src/config/validator.h"

namespace simclr {

namespace {

// Learns where the second document of a stream begins, and nothing else.
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
  int second_line = 0;  // where a second document, or text that belongs to none, begins; 0 if there is none
};

// Throws YAML::Exception. Not YAML::LoadAll: before a stray "," it makes documents without end.
Document parse_yaml(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStarts starts;
  if (parser.HandleNextDocument(starts)) parser.HandleNextDocument(starts);
  return {.root = YAML::Load(text), .second_line = starts.lines.size() > 1 ? starts.lines[1] : 0};
}

// All that is gathered on the way; faulty: keys whose value is not in settings, so that nothing is concluded from them.
struct Loading {
  Settings settings;
  KeyOrigins origins;
  Faults faults;
  std::set<std::string, std::less<>> faulty;
};

int line_of(const YAML::Node& node) {
  return node.Mark().line + 1;
}

// "!" marks quoted scalars, "?" and "" plain ones; anything else was written into the file.
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
    // A list of a list is wrong for every key, so its inside is not needed (and an alias may make it endless).
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
  loading.faulty.insert(key.path);
  loading.faults.add(where, key.path, fmt::format("{}; expected {}", problem, key.description()));
}

std::string unknown_key_text(const std::string& path, bool is_map) {
  if (find_key(path) != nullptr || is_section(path))
    return "a dotted key; write it nested, one section inside the other";
  return fmt::format("unknown {}; the nearest is {}", is_map ? "section" : "key", nearest_key(path, is_map));
}

// prefix is "" or "train."; the depth of the recursion is that of the table, whatever the file holds.
void read_section(const YAML::Node& map, const std::string& prefix, const std::string& file, Loading& loading) {
  std::map<std::string, int> lines;
  for (const auto& pair : map) {
    const std::string where = fmt::format("{}:{}", file, line_of(pair.first));
    if (!pair.first.IsScalar()) {
      loading.faults.add(where, "", "a key that is not a word; write key: value");
      continue;
    }
    const std::string name = pair.first.Scalar();
    const std::string path = prefix + name;
    const auto [first, is_new] = lines.emplace(name, line_of(pair.first));
    if (!is_new) {
      loading.faults.add(where, shown(path), fmt::format("given twice, first in line {}; keep one", first->second));
    } else if (name == "<<") {
      loading.faults.add(where, shown(path), "merge keys (<<) are not supported; write the keys out");
    } else if (name.find('.') != std::string::npos || (find_key(path) == nullptr && !is_section(path))) {
      const std::string text = loading.faults.is_full() ? "" : unknown_key_text(path, pair.second.IsMap());
      loading.faults.add(where, shown(path), text);
    } else if (const Key* key = find_key(path)) {
      assign_key(*key, pair.second, where, loading);
    } else if (pair.second.IsMap() && !has_explicit_tag(pair.second)) {
      read_section(pair.second, path + ".", file, loading);
    } else if (has_explicit_tag(pair.second)) {
      loading.faults.add(where, path, tag_problem(pair.second));
    } else {
      const std::string problem = found(to_value(pair.second));
      loading.faults.add(where, path, problem + "; expected a section with keys ({} for all defaults)");
    }
  }
}

void read_document(std::string_view text, const std::string& file, Loading& loading) {
  const std::string clean = clean_text(text, file, loading.faults);
  if (!loading.faults.empty()) return;
  Document document;
  try {
    document = parse_yaml(clean);
  } catch (const YAML::Exception& error) {
    loading.faults.add(fmt::format("{}:{}", file, error.mark.line + 1), "",
                       fmt::format("not valid YAML: {} (column {})", shown(error.msg), error.mark.column + 1));
    return;
  }
  const YAML::Node& root = document.root;
  if (document.second_line > 0) {
    loading.faults.add(fmt::format("{}:{}", file, document.second_line), "",
                       "a second YAML document or stray text begins here; a configuration is one document");
  } else if (!root.IsDefined() || root.IsNull()) {
    loading.faults.add(file, "", "holds no settings; write {} if all defaults are meant");
  } else if (has_explicit_tag(root)) {
    loading.faults.add(fmt::format("{}:{}", file, line_of(root)), "", tag_problem(root));
  } else if (!root.IsMap()) {
    loading.faults.add(fmt::format("{}:{}", file, line_of(root)), "",
                       found(to_value(root)) + " at the top; expected sections such as train: {epochs: 10}");
  } else {
    read_section(root, "", file, loading);
  }
}

// A plain scalar ends at " #": such a value must be quoted, or its end would be lost without a word.
std::string lost_comment(const YAML::Node& node, std::string_view text) {
  if (!node.IsScalar() || node.Tag() == "!" || text.find(" #") == std::string_view::npos) return "";
  return fmt::format("found {}, cut at # as in YAML; put the value in quotes", shown(node.Scalar()));
}

void read_override(const std::string& argument, std::set<std::string>& given, Loading& loading) {
  const std::string where = "--set";
  const size_t equals = argument.find('=');
  if (equals == std::string::npos || equals == 0) {
    loading.faults.add(where, "", fmt::format("found {}; expected section.key=value", shown(argument)));
    return;
  }
  const std::string path = argument.substr(0, equals);
  const std::string text = argument.substr(equals + 1);
  const Key* key = find_key(path);
  if (key == nullptr) {
    const std::string problem = is_section(path) ? "a section; set its keys one by one, as section.key=value"
                                                 : "unknown key; the nearest is " + nearest_key(path);
    loading.faults.add(where, shown(path), problem);
    return;
  }
  if (!given.insert(path).second) {
    loading.faults.add(where, path, "given twice; keep one");
    return;
  }
  Faults text_faults;
  if (text.size() > kMostConfigBytes || clean_text(text, "", text_faults) != text || !text_faults.empty() ||
      text.find('\n') != std::string::npos) {
    loading.faults.add(where, path, fmt::format("found {}; expected one line of UTF-8 text", shown(text)));
    return;
  }
  try {
    const Document document = parse_yaml(text);
    const YAML::Node& node = document.root;
    if (document.second_line > 0) {
      loading.faulty.insert(key->path);
      loading.faults.add(where, path, fmt::format("found {}, which is not one YAML value", shown(text)));
    } else if (const std::string lost = lost_comment(node, text); !lost.empty()) {
      loading.faulty.insert(key->path);
      loading.faults.add(where, path, lost);
    } else {
      assign_key(*key, node, where, loading);
    }
  } catch (const YAML::Exception& error) {
    loading.faulty.insert(key->path);
    loading.faults.add(where, path, fmt::format("found {}, not valid YAML: {}", shown(text), shown(error.msg)));
  }
}

}  // namespace

Settings settings_from_string(std::string_view text, const std::string& origin,
                              const std::vector<std::string>& overrides, KeyOrigins* origins) {
  Loading loading;
  read_document(text, shown_path(origin), loading);
  std::set<std::string> given;
  for (const std::string& argument : overrides) read_override(argument, given, loading);
  find_faults(loading.settings, loading.origins, loading.faulty, loading.faults);
  loading.faults.raise_if_any();
  if (origins != nullptr) *origins = std::move(loading.origins);
  return loading.settings;
}

Settings change_settings(const Settings& base, const std::string& base_origin, const std::string& path,
                         const std::vector<std::string>& overrides, KeyOrigins* given) {
  Loading loading{.settings = base, .origins = {}, .faults = {}, .faulty = {}};
  if (!path.empty()) read_document(read_text_file(path), shown_path(path), loading);
  std::set<std::string> set_before;
  for (const std::string& argument : overrides) read_override(argument, set_before, loading);
  if (given != nullptr) *given = loading.origins;
  for (const Key& key : all_keys()) loading.origins.try_emplace(key.path, shown_path(base_origin));
  find_faults(loading.settings, loading.origins, loading.faulty, loading.faults);
  loading.faults.raise_if_any();
  return loading.settings;
}

Settings load_settings(const std::string& path, const std::vector<std::string>& overrides, KeyOrigins* origins) {
  return settings_from_string(read_text_file(path), path, overrides, origins);
}

}  // namespace simclr
