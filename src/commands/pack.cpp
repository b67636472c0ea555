#include "src/commands/pack.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "kernels/augment/resize.h"
#include "kernels/common/error.h"
#include "kernels/common/exec.h"
#include "kernels/common/numbers.h"
#include "kernels/common/parallel.h"
#include "src/base/log.h"
#include "src/commands/part_progress.h"
#include "src/config/config_errors.h"
#include "src/config/loader.h"
#include "src/data/packed_file.h"

namespace simclr {
namespace {

constexpr int64_t kImagesAThread = 16;  // in a block that is decoded together

// One image of a block: decoded, and resized if it is too large.
struct Slot {
  std::vector<uint8_t> decoded, resized;
  PlanarImage image;
};

void prepare(const Dataset& dataset, int64_t i, int64_t shorter, Slot& slot) {
  slot.image = dataset.image(i, slot.decoded);
  const auto [height, width] = packed_size(slot.image.height, slot.image.width, shorter);
  if (height == slot.image.height && width == slot.image.width) return;
  slot.resized.resize(3 * height * width);
  resize_image(slot.image, height, width, slot.resized.data());
  slot.image = {slot.resized.data(), height, width};
}

void add_split(const Dataset& dataset, Split split, int64_t shorter, int threads, PackedWriter& writer) {
  writer.start(split, dataset.has_labels());
  PartProgress progress(true, fmt::format("packing {} images", name_of(split)));
  std::vector<Slot> slots(threads * kImagesAThread);
  CpuExec exec;
  exec.threads = threads;
  const int64_t block = std::ssize(slots);
  for (int64_t first = 0; first < dataset.count(); first += block) {
    const int64_t count = std::min(block, dataset.count() - first);
    parallel_for(exec, count, [&](int64_t k, int) { prepare(dataset, first + k, shorter, slots[k]); });
    for (int64_t k = 0; k < count; ++k)
      writer.add(slots[k].image, dataset.has_labels() ? dataset.label(first + k) : -1);
    progress.at(first + count, dataset.count());
  }
}

void check(const std::string& path) {
  const PackedFile file(path);
  std::string counts;
  for (const Split split : {Split::kTrain, Split::kTest, Split::kBank}) {
    if (!file.matches_content(split, no_beat))
      fail(ExitCode::kData, "{} is damaged: its {} images do not match their checksum; write it again",
           shown_path(path), name_of(split));
    const size_t count = file.entries(split).size();
    if (count > 0) counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, name_of(split));
  }
  log_info("{}: {} images, all checksums match", shown_path(path), counts);
}

}  // namespace

ImageSize packed_size(int64_t height, int64_t width, int64_t shorter) {
  if (shorter == 0 || std::min(height, width) <= shorter) return {height, width};
  if (height <= width) return {shorter, width * shorter / height};
  return {height * shorter / width, shorter};
}

void pack(const PackCommand& command, int ranks) {
  if (ranks > 1)
    fail(ExitCode::kUsage, "pack runs on one rank, found {}; start it without mpirun (--threads uses the cores)",
         ranks);
  if (!command.check.empty()) return check(command.check);
  const Settings settings = load_settings(command.source.config, command.source.overrides);
  for (const std::string& text : ignored_overrides(command.source.overrides)) log_info("{}", text);
  const int threads = command.threads > 0 ? command.threads : static_cast<int>(std::thread::hardware_concurrency());
  const auto train = open_dataset(settings.data, Split::kTrain), test = open_dataset(settings.data, Split::kTest);
  const auto bank = open_bank(settings.data);
  PackedWriter writer(command.output, train->class_names());
  add_split(*train, Split::kTrain, command.size, std::max(threads, 1), writer);
  add_split(*test, Split::kTest, command.size, std::max(threads, 1), writer);
  if (bank) add_split(*bank, Split::kBank, command.size, std::max(threads, 1), writer);
  writer.finish();
  const uintmax_t bytes = std::filesystem::file_size(command.output);
  log_info("{}: {} training and {} test images, {:.1f} MB; train with --set data.format=packed --set data.path={}",
           shown_path(command.output), train->count(), test->count(), as_double(bytes) * 1e-6,
           shown_path(command.output));
}

}  // namespace simclr
