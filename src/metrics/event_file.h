// RUN/events.out.tfevents.TIME.HOST.PID.simclr: the run as TensorBoard reads it (`tensorboard --logdir runs`). One file
// per start of the program, as TensorFlow does it: a run that goes on from a checkpoint begins a new one, which voids
// what the earlier ones say of later steps. Written by rank 0 alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "src/base/file_handle.h"
#include "src/metrics/event_record.h"

namespace simclr {

// Everything throws Error(kOutput) with the path and the system's reason.
class EventFile {
 public:
  // steps_done: 0 for a run from its start, which replaces what an earlier run of this folder wrote.
  EventFile(const std::filesystem::path& run_folder, int64_t steps_done);

  // The numbers of a line of metrics.jsonl (metrics_file.h), but for step and epoch: train/NAME for a line of a step,
  // evaluate/NAME for one without a loss.
  void add_metrics(const std::string& line);
  void add_text(int64_t step, const std::string& tag, const std::string& markdown);
  void add_image(int64_t step, const std::string& tag, const EncodedImage& image);
  void sync();  // to the disk

  const std::filesystem::path& path() const { return path_; }
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

 private:
  void append(const std::string& event);

  std::filesystem::path path_;
  FileHandle file_;
};

}  // namespace simclr
