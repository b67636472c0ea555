// Reading and writing of files. Little-endian machines only: the format is little-endian and tensors are not converted.
#include "src/checkpoint/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include "kernels/common/error.h"
#include "src/base/file.h"
#include "src/base/sha256.h"

namespace simclr {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr int64_t kLengthBytes = 8;

// Position of the 64 digits in the text of the header, npos unless the field occurs exactly once. The search text
// cannot occur inside a JSON string, where its quotes would be escaped.
size_t find_checksum_digits(std::string_view text) {
  const std::string field = fmt::format("\"{}\":\"", kChecksumKey);
  const size_t at = text.find(field);
  if (at == text.npos || text.find(field, at + 1) != text.npos) return text.npos;
  const size_t digits = at + field.size();
  const size_t end = digits + Sha256::kHexDigits;
  return end < text.size() && text[end] == '"' ? digits : text.npos;
}

std::string length_field(size_t header_bytes) {
  const uint64_t length = header_bytes;
  std::string field(kLengthBytes, '\0');
  std::memcpy(field.data(), &length, kLengthBytes);
  return field;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const std::map<std::string, std::string>& metadata,
                       std::span<const NamedTensor> tensors, const Beat& beat) {
  SafetensorsHeader header{.metadata = metadata, .entries = {}};
  header.metadata[std::string(kChecksumKey)] = std::string(Sha256::kHexDigits, '0');
  std::set<std::string_view> names;
  int64_t position = 0;
  for (const NamedTensor& tensor : tensors) {
    SIMCLR_CHECK(names.insert(tensor.name).second, "two tensors are called '{}'", tensor.name);
    const int64_t end = position + tensor.bytes();
    SIMCLR_CHECK(end == position || tensor.data != nullptr, "tensor '{}' has no memory", tensor.name);
    header.entries.push_back({tensor.name, tensor.type, tensor.shape, position, end});
    position = end;
  }

  std::string prefix;
  try {
    const std::string text = format_safetensors_header(header);
    parse_safetensors_header(text, position);  // a header that the reader would refuse is never written
    if (std::ssize(text) > kMostHeaderBytes) {
      fail(ExitCode::kOutput, "its header has {} bytes, the limit is {}; shorten the configuration", text.size(),
           kMostHeaderBytes);
    }
    prefix = length_field(text.size()) + text;
  } catch (const Error& error) {
    fail(ExitCode::kOutput, "cannot write {}: {}", path.string(), error.what());
  }

  Sha256 hash;
  hash.update(prefix);
  for (const NamedTensor& tensor : tensors) {
    in_pieces(tensor.data, tensor.bytes(), beat,
              [&](const std::byte* piece, size_t bytes) { hash.update(piece, bytes); });
  }
  const size_t digits = find_checksum_digits(prefix);
  SIMCLR_CHECK(digits != prefix.npos, "{} has no place for the checksum", path.string());
  prefix.replace(digits, Sha256::kHexDigits, hash.hex());

  DurableFile file(path);
  file.write(std::as_bytes(std::span(prefix)));
  for (const NamedTensor& tensor : tensors) {
    in_pieces(tensor.data, tensor.bytes(), beat, [&](const std::byte* piece, size_t bytes) {
      file.write({piece, bytes});
    });
  }
  file.commit();
}

SafetensorsFile::SafetensorsFile(std::filesystem::path path) : path_(std::move(path)) {
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  file_ = FileHandle(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file_.is_open()) fail_with(errno_text(errno));
  read_prefix();
  try {
    header_ = parse_safetensors_header(std::string_view(prefix_).substr(kLengthBytes), file_bytes_ - data_start_);
  } catch (const Error& error) {
    fail_with(error.what());
  }
}

// Sets prefix_, data_start_ and file_bytes_; the length field is checked before memory is allocated.
void SafetensorsFile::read_prefix() {
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) fail_with(errno_text(errno));
  if (S_ISDIR(status.st_mode)) fail_with("it is a folder");
  if (!S_ISREG(status.st_mode)) fail_with("it is not a regular file");
  file_bytes_ = status.st_size;
  if (file_bytes_ == 0) fail_with("it is empty");
  if (file_bytes_ < kLengthBytes) fail_with(fmt::format("it has only {} bytes: cut off", file_bytes_));
  uint64_t length = 0;
  read_at(0, &length, kLengthBytes);
  if (length > uint64_t{kMostHeaderBytes}) {
    fail_with(fmt::format("its header claims {} bytes: not a safetensors file, or damaged", length));
  }
  data_start_ = kLengthBytes + length;
  if (data_start_ > file_bytes_) {
    fail_with(fmt::format("its header claims {} bytes, the file has {}: cut off, or not a safetensors file", length,
                          file_bytes_));
  }
  prefix_.resize(data_start_);
  read_at(0, prefix_.data(), data_start_);
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  for (const SafetensorsEntry& entry : header_.entries) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

void SafetensorsFile::verify_checksum(const Beat& beat) const {
  const size_t digits = find_checksum_digits(prefix_);
  if (digits == prefix_.npos) fail_with("it has no content checksum: damaged, or written by another program");
  std::string zeroed = prefix_;
  zeroed.replace(digits, Sha256::kHexDigits, Sha256::kHexDigits, '0');
  Sha256 hash;
  hash.update(zeroed);
  read_in_pieces({.name = {}, .type = TensorType::kUint8, .shape = {}, .begin = 0, .end = file_bytes_ - data_start_},
                 [&](const void* data, size_t bytes) {
                   hash.update(data, bytes);
                   beat();
                 });
  if (hash.hex() != std::string_view(prefix_).substr(digits, Sha256::kHexDigits)) {
    fail_with("its content does not match its checksum: damaged");
  }
}

void SafetensorsFile::read(const SafetensorsEntry& entry, void* data, const Beat& beat) const {
  for (int64_t at = entry.begin; at < entry.end; at += kPieceBytes) {
    read_at(data_start_ + at, static_cast<char*>(data) + (at - entry.begin), std::min(kPieceBytes, entry.end - at));
    beat();
  }
}

void SafetensorsFile::read_at(int64_t position, void* data, int64_t bytes) const {
  char* next = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = ::pread(file_.get(), next, bytes, position);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_with(errno_text(errno));
    if (got == 0) fail_with(fmt::format("it ends at byte {}: it was cut off while it was read", position));
    next += got;
    position += got;
    bytes -= got;
  }
}

void SafetensorsFile::fail_with(const std::string& cause) const {
  fail(ExitCode::kOutput, "cannot read {}: {}", path_.string(), cause);
}

}  // namespace simclr
