#include "src/data/packed_file.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <utility>

#include "kernels/common/error.h"
#include "src/config/config_errors.h"

namespace simclr {
namespace {

constexpr std::array<char, 8> kMark = {'S', 'I', 'M', 'C', 'L', 'R', 'P', 'K'};
constexpr uint32_t kVersion = 1;
constexpr uint64_t kStartBytes = 16, kEntryBytes = sizeof(PackedEntry), kTailBytes = sizeof(PackedTail);
constexpr uint32_t kMostSide = 1 << 20;
constexpr int64_t kLengthBytes = sizeof(uint32_t);  // of a class name
constexpr const char* kAdvice = "write it again with simclr_train pack";

static_assert(kEntryBytes == 24 && kTailBytes == 312, "the layout of the file");
static_assert(std::endian::native == std::endian::little, "the file is mapped as it is");

std::array<char, 64> digits(Sha256& hash) {
  std::array<char, 64> text{};
  const std::string hex = hash.hex();
  std::copy(hex.begin(), hex.end(), text.begin());
  return text;
}

void hash_image(Sha256& hash, const PlanarImage& image, int32_t label) {
  const std::array<int64_t, 3> facts = {image.height, image.width, label};
  hash.update(facts.data(), sizeof facts);
  hash.update(image.pixels, image.bytes());
}

}  // namespace

PackedWriter::PackedWriter(const std::filesystem::path& path, std::vector<std::string> class_names)
    : file_(path), class_names_(std::move(class_names)) {
  const std::array<uint32_t, 2> version = {kVersion, 0};
  file_.write(std::as_bytes(std::span(kMark)));
  file_.write(std::as_bytes(std::span(version)));
  written_ = kStartBytes;
}

void PackedWriter::end_split() {
  tail_.contents[split_] = digits(content_);
  content_ = Sha256();
  ++split_;
}

void PackedWriter::start(Split split, bool has_labels) {
  const auto next = static_cast<size_t>(split);
  SIMCLR_CHECK(next >= split_ && tail_.counts[next] == 0, "split {} after {}", next, split_);
  while (split_ < next) end_split();
  if (has_labels) tail_.labeled |= 1U << next;
}

void PackedWriter::add(const PlanarImage& image, int32_t label) {
  const bool labeled = (tail_.labeled >> split_ & 1) != 0;
  SIMCLR_CHECK(image.height >= 1 && image.width >= 1 && image.height <= kMostSide && image.width <= kMostSide,
               "an image of {}x{} pixels", image.height, image.width);
  SIMCLR_CHECK(labeled ? label >= 0 && label < std::ssize(class_names_) : label == -1, "label {} of {} classes", label,
               class_names_.size());
  entries_.push_back({.offset = written_,
                      .height = static_cast<uint32_t>(image.height),
                      .width = static_cast<uint32_t>(image.width),
                      .label = label});
  hash_image(content_, image, label);
  file_.write(std::as_bytes(std::span(image.pixels, image.bytes())));
  written_ += image.bytes();
  ++tail_.counts[split_];
}

void PackedWriter::finish() {
  while (split_ < kPackedSplits) end_split();
  const std::array<char, 8> zeros{};
  const size_t gap = (8 - written_ % 8) % 8;
  file_.write(std::as_bytes(std::span(zeros).first(gap)));
  std::string names;
  for (const std::string& name : class_names_) {
    const auto length = static_cast<uint32_t>(name.size());
    names.append(reinterpret_cast<const char*>(&length), sizeof length);
    names += name;
  }
  tail_.entries_at = written_ + gap;
  tail_.names_at = tail_.entries_at + entries_.size() * kEntryBytes;
  tail_.classes = static_cast<uint32_t>(class_names_.size());
  tail_.mark = kMark;
  Sha256 described;
  described.update(entries_.data(), entries_.size() * kEntryBytes);
  described.update(names);
  described.update(&tail_, offsetof(PackedTail, described));
  tail_.described = digits(described);
  file_.write(std::as_bytes(std::span(entries_)));
  file_.write(std::as_bytes(std::span(names)));
  file_.write(std::as_bytes(std::span(&tail_, 1)));
  file_.commit();
}

PackedFile::PackedFile(const std::filesystem::path& path) : path_(path), file_(path, "give the file as data.path") {
  check_tail();
  read_names();
  check_entries();
}

void PackedFile::refuse(const std::string& what) const {
  fail(ExitCode::kData, "{} {}; {}", shown_path(path_.string()), what, kAdvice);
}

void PackedFile::check_tail() {
  const uint64_t bytes = file_.size();
  if (bytes < kStartBytes || std::memcmp(file_.data(), kMark.data(), kMark.size()) != 0)
    refuse("is not a packed data set: it does not start with SIMCLRPK");
  uint32_t version = 0;
  std::memcpy(&version, file_.data() + kMark.size(), sizeof version);
  if (version != kVersion) refuse(fmt::format("has version {}, this program reads {}", version, kVersion));
  if (bytes < kStartBytes + kTailBytes) refuse(fmt::format("has {} bytes: cut off", bytes));
  const uint64_t end = bytes - kTailBytes;  // of the names
  std::memcpy(&tail_, file_.data() + end, kTailBytes);
  if (tail_.mark != kMark) refuse("does not end with SIMCLRPK: cut off or still being written");
  uint64_t images = 0;
  bool fits = tail_.entries_at >= kStartBytes && tail_.entries_at % 8 == 0 && tail_.entries_at <= tail_.names_at &&
              tail_.names_at <= end;
  for (const uint64_t count : tail_.counts) {
    fits = fits && count <= bytes / kEntryBytes;
    images += fits ? count : 0;
  }
  if (!fits || tail_.names_at - tail_.entries_at != images * kEntryBytes)
    refuse("has a damaged tail: its offsets do not match the file");
  Sha256 described;
  described.update(file_.data() + tail_.entries_at, end - tail_.entries_at);
  described.update(&tail_, offsetof(PackedTail, described));
  if (digits(described) != tail_.described) refuse("is damaged: the checksum of its description does not match");
}

void PackedFile::read_names() {
  const uint8_t* at = file_.data() + tail_.names_at;
  const uint8_t* const end = file_.data() + file_.size() - kTailBytes;
  for (uint32_t i = 0; i < tail_.classes; ++i) {
    uint32_t length = 0;
    if (end - at < kLengthBytes) refuse(fmt::format("has names for {} of {} classes", i, tail_.classes));
    std::memcpy(&length, at, sizeof length);
    at += sizeof length;
    if (end - at < int64_t{length}) refuse(fmt::format("has names for {} of {} classes", i, tail_.classes));
    class_names_.emplace_back(reinterpret_cast<const char*>(at), length);
    at += length;
  }
  if (at != end) refuse(fmt::format("has {} unknown bytes after its class names", end - at));
}

void PackedFile::check_entries() {
  for (const Split split : {Split::kTrain, Split::kTest, Split::kBank}) {
    int64_t i = 0;
    for (const PackedEntry& e : entries(split)) {
      const bool sized = e.height >= 1 && e.width >= 1 && e.height <= kMostSide && e.width <= kMostSide;
      if (!sized || e.offset < kStartBytes || e.offset > tail_.entries_at ||
          uint64_t{3} * e.height * e.width > tail_.entries_at - e.offset) {
        refuse(fmt::format("is damaged: {} image {} ({}x{} at {}) is outside the pixels", name_of(split), i, e.height,
                           e.width, e.offset));
      }
      const bool labeled =
          has_labels(split) ? e.label >= 0 && int64_t{e.label} < int64_t{tail_.classes} : e.label == -1;
      if (!labeled)
        refuse(fmt::format("is damaged: {} image {} has label {} of {} classes", name_of(split), i, e.label,
                           tail_.classes));
      ++i;
    }
  }
}

std::span<const PackedEntry> PackedFile::entries(Split split) const {
  const auto index = static_cast<int64_t>(split);
  const uint64_t before = std::accumulate(tail_.counts.begin(), tail_.counts.begin() + index, uint64_t{0});
  const auto* all = reinterpret_cast<const PackedEntry*>(file_.data() + tail_.entries_at);  // aligned to 8: checked
  return std::span(all + before, tail_.counts[index]);
}

PlanarImage PackedFile::image(const PackedEntry& entry) const {
  return {file_.data() + entry.offset, entry.height, entry.width};
}

std::string PackedFile::content_hash(Split split) const {
  const auto& text = tail_.contents[static_cast<size_t>(split)];
  return {text.begin(), text.end()};
}

bool PackedFile::matches_content(Split split, const Beat& beat) const {
  Sha256 hash;
  for (const PackedEntry& entry : entries(split)) {
    hash_image(hash, image(entry), entry.label);
    beat();
  }
  return hash.hex() == content_hash(split);
}

}  // namespace simclr
