#include "kernels/conv2d/cudnn_plan_name.h"

#include <charconv>
#include <string_view>

#include "kernels/common/error.h"

namespace simclr::cudnn {
namespace {

class Reader {
 public:
  explicit Reader(const std::string& text) : whole_(text), rest_(text) {}

  bool at_end() const { return rest_.empty(); }
  void word(std::string_view expected) {
    if (!rest_.starts_with(expected)) refuse();
    rest_.remove_prefix(expected.size());
  }
  int64_t integer() {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc{}) refuse();
    rest_.remove_prefix(end - rest_.data());
    return value;
  }

 private:
  [[noreturn]] void refuse() const {
    fail(ExitCode::kDevice, "'{}' does not name a convolution plan; write it like 'engine 67 knobs 2=4,13=0'", whole_);
  }
  const std::string& whole_;
  std::string_view rest_;
};

}  // namespace

std::string PlanName::text() const {
  std::string text = fmt::format("engine {} knobs", engine);
  const char* separator = " ";
  for (const auto& [type, value] : knobs) {
    text += fmt::format("{}{}={}", separator, type, value);
    separator = ",";
  }
  return text;
}

PlanName PlanName::parse(const std::string& text) {
  Reader reader(text);
  PlanName name;
  reader.word("engine ");
  name.engine = reader.integer();
  reader.word(" knobs");
  for (const char* separator = " "; !reader.at_end(); separator = ",") {
    reader.word(separator);
    const int64_t type = reader.integer();
    reader.word("=");
    name.knobs.emplace_back(type, reader.integer());
  }
  return name;
}

}  // namespace simclr::cudnn
