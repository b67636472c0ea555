#include "src/data/packed_dataset.h"

#include <utility>

#include "kernels/common/error.h"
#include "src/config/config_errors.h"
#include "src/data/packed_file.h"

namespace simclr {
namespace {

class PackedDataset final : public Dataset {
 public:
  PackedDataset(PackedFile file, Split split) : file_(std::move(file)), split_(split), entries_(file_.entries(split)) {}
  int64_t count() const override { return std::ssize(entries_); }
  bool has_labels() const override { return file_.has_labels(split_); }
  int32_t label(int64_t i) const override { return entries_[i].label; }
  const std::vector<std::string>& class_names() const override { return file_.class_names(); }
  PlanarImage image(int64_t i, std::vector<uint8_t>&) const override { return file_.image(entries_[i]); }
  std::string fingerprint(const Beat&) const override { return file_.content_hash(split_); }

 private:
  PackedFile file_;
  Split split_;
  std::span<const PackedEntry> entries_;
};

}  // namespace

std::unique_ptr<Dataset> open_packed(const std::string& path, Split split) {
  PackedFile file(path);
  if (file.entries(split).empty())
    fail(ExitCode::kData, "{} has no {} images; pack a data set that has them", shown_path(path), name_of(split));
  return std::make_unique<PackedDataset>(std::move(file), split);
}

std::unique_ptr<Dataset> open_packed_bank(const std::string& path) {
  PackedFile file(path);
  if (file.entries(Split::kBank).empty()) return nullptr;
  return std::make_unique<PackedDataset>(std::move(file), Split::kBank);
}

}  // namespace simclr
