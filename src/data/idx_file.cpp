#include "src/data/idx_file.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "kernels/common/error.h"
#include "src/base/file.h"
#include "src/config/config_errors.h"
#include "src/data/data_files.h"

namespace simclr {
namespace {

// Deflate expands one byte to at most 1032 (zlib's technical details); kSlack is for files of a few bytes.
constexpr int64_t kMostExpansion = 1032, kSlack = 1 << 16;

uint32_t big_endian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

}  // namespace

void IdxFile::Close::operator()(gzFile_s* file) const noexcept {
  gzclose_r(file);
}

void IdxFile::refuse(std::string_view what) const {
  fail(ExitCode::kData, "{} {}; {}", shown_path(path_.string()), what, advice_);
}

size_t IdxFile::read_some(void* data, size_t bytes) {
  const int got = gzread(file_.get(), data, static_cast<unsigned>(bytes));
  int code = Z_OK;
  const char* text = gzerror(file_.get(), &code);
  if (code == Z_ERRNO) refuse(fmt::format("cannot be read: {}", errno_text(errno)));
  if (code == Z_BUF_ERROR) refuse("ends in the middle of its compressed data: incomplete");
  if (got < 0 || code < 0) refuse(fmt::format("is damaged: zlib reports {}", shown(text)));
  return got;
}

IdxFile::IdxFile(std::filesystem::path path, size_t dimensions, std::string_view advice)
    : path_(std::move(path)), advice_(advice) {
  const int64_t file_bytes = file_size_of(path_, advice);
  errno = 0;
  file_.reset(gzopen(path_.c_str(), "rbe"));  // takes plain files as they are
  if (!file_) refuse(fmt::format("cannot be opened: {}", errno_text(errno)));
  gzbuffer(file_.get(), 1 << 17);

  std::array<uint8_t, 16> header{};
  SIMCLR_CHECK(dimensions >= 1 && dimensions <= 3, "{} dimensions", dimensions);
  const size_t header_bytes = 4 + 4 * dimensions;
  const size_t got = read_some(header.data(), header_bytes);
  if (got < header_bytes) refuse(fmt::format("has {} bytes, an idx header has {}: cut off", got, header_bytes));
  const uint32_t magic = big_endian(header.data()), expected = 0x0800 + static_cast<uint32_t>(dimensions);
  if (magic != expected)
    refuse(fmt::format("starts with {:#010x}, expected {:#010x} (idx, bytes, {} dimension{})", magic, expected,
                       dimensions, dimensions == 1 ? "" : "s"));
  const bool compressed = gzdirect(file_.get()) == 0;
  const int64_t most = compressed ? file_bytes * kMostExpansion + kSlack : file_bytes;
  int64_t values = 1;
  for (size_t d = 0; d < dimensions; ++d) {
    const int64_t size = big_endian(header.data() + 4 + 4 * d);
    shape_.push_back(size);
    if (size != 0 && values > most / size)
      refuse(fmt::format("has a header for [{}] values, more than its {} bytes can hold: damaged or incomplete",
                         fmt::join(shape_, ", "), file_bytes));
    values *= size;
  }
}

std::vector<uint8_t> IdxFile::read(const Beat& beat) {
  size_t values = 1;
  for (const int64_t size : shape_) values *= size;
  std::vector<uint8_t> content(values);
  for (size_t at = 0; at < values; beat()) {
    const size_t got = read_some(content.data() + at, std::min(kBeatBytes, values - at));
    if (got == 0) refuse(fmt::format("ends after {} of {} values: incomplete", at, values));
    at += got;
  }
  uint8_t more = 0;  // zlib checks gzip's checksum when it reaches the end
  if (read_some(&more, 1) != 0) refuse(fmt::format("has more than the {} values its header states: damaged", values));
  return content;
}

}  // namespace simclr
