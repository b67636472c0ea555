// magic "\x93NUMPY", version (2 bytes), length of the text (2 bytes; 4 from version 2.0 on), text: a Python dictionary
//   {'descr': '<f4', 'fortran_order': False, 'shape': (4, 8), }
// then spaces and a newline. The order of keys, quotes and spaces are free, as Python's parser accepts them.
#include "src/data/npy_header.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/common/error.h"
#include "src/config/config_errors.h"

namespace simclr {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::string_view kHowToSave = "save it with np.save(path, z.astype(np.float32))";

class DictionaryParser {
 public:
  explicit DictionaryParser(std::string_view text) : text_(text) {}

  struct Values {
    std::optional<std::string_view> descr, fortran_order, shape;  // the text of each value
  };

  Values parse() {
    Values values;
    expect('{');
    while (!take('}')) {
      const std::string_view key = parse_string();
      expect(':');
      std::optional<std::string_view>& value = place_of(values, key);
      if (value) refuse(fmt::format("the key '{}' is repeated", key));
      value = parse_value();
      if (take('}')) break;
      expect(',');
    }
    skip_spaces();
    if (at_ != text_.size()) refuse("there are bytes after its dictionary");
    return values;
  }

 private:
  [[noreturn]] static void refuse(const std::string& why) {
    fail(ExitCode::kData, "its header is damaged: {}; {}", why, kHowToSave);
  }

  std::optional<std::string_view>& place_of(Values& values, std::string_view key) const {
    if (key == "descr") return values.descr;
    if (key == "fortran_order") return values.fortran_order;
    if (key == "shape") return values.shape;
    refuse(fmt::format("unknown key '{}'", shown(key)));
  }

  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool take(char c) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) refuse(fmt::format("no '{}' at byte {} of its dictionary", c, at_));
  }

  // 'text' or "text", without escapes.
  std::string_view parse_string() {
    skip_spaces();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') refuse(fmt::format("no quoted key at byte {} of its dictionary", at_));
    const size_t begin = ++at_;
    at_ = std::min(text_.find(quote, begin), text_.size());
    if (at_ == text_.size()) refuse("a quoted text has no closing quote");
    return text_.substr(begin, at_++ - begin);
  }

  // A string with its quotes, a word, or anything in balanced brackets.
  std::string_view parse_value() {
    skip_spaces();
    const size_t begin = at_;
    int depth = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\'' || c == '"') {
        parse_string();
        continue;
      }
      if (c == '(' || c == '[') ++depth;
      if ((c == ')' || c == ']') && --depth < 0) break;
      if (depth == 0 && (c == ',' || c == '}')) break;
      ++at_;
    }
    std::string_view value = text_.substr(begin, at_ - begin);
    while (!value.empty() && value.back() == ' ') value.remove_suffix(1);
    if (value.empty() || depth != 0) refuse(fmt::format("no value at byte {} of its dictionary", begin));
    return value;
  }

  const std::string_view text_;
  size_t at_ = 0;
};

NpyType parse_type(std::string_view descr) {
  const bool quoted = descr.size() > 2 && (descr[0] == '\'' || descr[0] == '"');
  const std::string_view name = quoted ? descr.substr(1, descr.size() - 2) : descr;
  if (name == "<f4") return NpyType::kFloat32;
  if (name == "<f8") return NpyType::kFloat64;
  if (name == ">f4" || name == ">f8")
    fail(ExitCode::kData, "its numbers are big-endian ('{}'); save z.astype('<{}')", name, name.substr(1));
  fail(ExitCode::kData, "its dtype is {}, expected float32 or float64; save z.astype(np.float32)", shown(descr));
}

// "(4, 8)": integers with commas between them and optionally after the last; Python 2 wrote 4L.
std::optional<std::vector<int64_t>> parse_tuple(std::string_view text) {
  if (text.size() < 2 || text.front() != '(' || text.back() != ')') return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::vector<int64_t> numbers;
  const auto skip_spaces = [&] {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  };
  for (skip_spaces(); !text.empty(); skip_spaces()) {
    int64_t number = 0;
    size_t digits = 0;
    for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
      if (__builtin_mul_overflow(number, 10, &number) || __builtin_add_overflow(number, text[digits] - '0', &number))
        return std::nullopt;
    }
    if (digits == 0) return std::nullopt;
    text.remove_prefix(digits);
    if (!text.empty() && text.front() == 'L') text.remove_prefix(1);
    numbers.push_back(number);
    skip_spaces();
    if (text.empty()) break;
    if (text.front() != ',') return std::nullopt;
    text.remove_prefix(1);
  }
  return numbers;
}

// The place of the dictionary's text in the file, in bytes.
struct TextPlace {
  int64_t begin, length;
};

TextPlace find_text(std::span<const std::byte> start, int64_t file_bytes) {
  const auto byte = [&](int64_t at) { return std::to_integer<int64_t>(start[at]); };
  constexpr int64_t kVersionAt = kMagic.size(), kLengthAt = kVersionAt + 2;
  for (size_t k = 0; k < std::min(kMagic.size(), start.size()); ++k) {
    if (start[k] != std::byte(kMagic[k]))
      fail(ExitCode::kData, "it is not a .npy file (its first bytes are not \\x93NUMPY); {}", kHowToSave);
  }
  if (std::ssize(start) < kLengthAt + 4) fail(ExitCode::kData, "cut off: only {} bytes; copy it again", file_bytes);
  const int64_t major = byte(kVersionAt), minor = byte(kVersionAt + 1);
  if (major < 1 || major > 3 || minor != 0)
    fail(ExitCode::kData, "its format is version {}.{}, expected 1.0, 2.0 or 3.0; {}", major, minor, kHowToSave);
  const int64_t length_bytes = major == 1 ? 2 : 4;
  int64_t length = 0;
  for (int64_t k = length_bytes - 1; k >= 0; --k) length = length * 256 + byte(kLengthAt + k);
  const int64_t begin = kLengthAt + length_bytes;
  if (begin + length > file_bytes)
    fail(ExitCode::kData, "its header claims {} bytes, the file has {}: cut off or damaged; copy it again", length,
         file_bytes);
  if (begin + length > kMostNpyHeaderBytes)
    fail(ExitCode::kData, "its header claims {} bytes, more than a matrix needs: damaged; {}", length, kHowToSave);
  return {begin, length};
}

void check_size(const NpyHeader& header, std::string_view shape, int64_t file_bytes) {
  int64_t elements = 0, bytes = 0;
  if (__builtin_mul_overflow(header.rows, header.columns, &elements) ||
      __builtin_mul_overflow(elements, bytes_of(header.type), &bytes))
    fail(ExitCode::kData, "its shape {} exceeds the size of any file: damaged; {}", shown(shape), kHowToSave);
  const int64_t there = file_bytes - header.data_start;
  if (there != bytes)
    fail(ExitCode::kData, "its shape {} of {} needs {} bytes of data, there are {}: {}; save or copy it again",
         shown(shape), name_of(header.type), bytes, there, there < bytes ? "cut off" : "there are extra bytes");
}

}  // namespace

std::string_view name_of(NpyType type) {
  return type == NpyType::kFloat32 ? "float32" : "float64";
}

NpyHeader parse_npy_header(std::span<const std::byte> start, int64_t file_bytes) {
  if (file_bytes == 0) fail(ExitCode::kData, "it is empty; {}", kHowToSave);
  const TextPlace place = find_text(start, file_bytes);
  SIMCLR_CHECK(std::ssize(start) >= place.begin + place.length, "{} bytes of a header that ends at {}", start.size(),
               place.begin + place.length);
  const std::string_view text(reinterpret_cast<const char*>(start.data()) + place.begin, place.length);
  const DictionaryParser::Values values = DictionaryParser(text).parse();
  for (const auto& [key, value] : {std::pair("descr", values.descr), std::pair("fortran_order", values.fortran_order),
                                   std::pair("shape", values.shape)}) {
    if (!value) fail(ExitCode::kData, "its header has no '{}': damaged; {}", key, kHowToSave);
  }
  NpyHeader header{.type = parse_type(*values.descr), .data_start = place.begin + place.length};
  if (*values.fortran_order == "True") fail(ExitCode::kData, "it is in Fortran order; save np.ascontiguousarray(z)");
  if (*values.fortran_order != "False")
    fail(ExitCode::kData, "its header is damaged: fortran_order is {}, expected True or False; {}",
         shown(*values.fortran_order), kHowToSave);
  const auto shape = parse_tuple(*values.shape);
  if (!shape)
    fail(ExitCode::kData, "its header is damaged: the shape is {}, expected two numbers as (4, 8); {}",
         shown(*values.shape), kHowToSave);
  if (shape->size() != 2)
    fail(ExitCode::kData, "its shape is {}, expected a matrix [N, C], an image a row; save z.reshape(N, C)",
         shown(*values.shape));
  header.rows = (*shape)[0];
  header.columns = (*shape)[1];
  if (header.rows == 0 || header.columns == 0)
    fail(ExitCode::kData, "its shape is {}: it holds no numbers; save a matrix [N, C]", shown(*values.shape));
  check_size(header, *values.shape, file_bytes);
  return header;
}

std::string format_npy_header(const NpyHeader& header) {
  return format_npy_header(fmt::format("<f{}", bytes_of(header.type)),
                           fmt::format("({}, {})", header.rows, header.columns));
}

std::string format_npy_header(std::string_view descr, std::string_view shape) {
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr, shape);
  constexpr size_t kBefore = kMagic.size() + 4, kAlignment = 64;
  text.append(kAlignment - 1 - (kBefore + text.size()) % kAlignment, ' ');
  text += '\n';
  const auto length = static_cast<unsigned>(text.size());
  std::string out(kMagic);
  out += {'\1', '\0', static_cast<char>(length & 0xFF), static_cast<char>(length >> 8)};
  return out + text;
}

}  // namespace simclr
