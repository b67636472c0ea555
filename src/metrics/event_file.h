// RUN/events.out.tfevents.TIME.HOST.PID.simclr: the run for TensorBoard (`tensorboard --logdir runs`). One file per
// start of the program, as in TensorFlow: a resumed run begins a new file, which invalidates the later steps in earlier
// files. Written by rank 0 only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "src/base/file_handle.h"
#include "src/metrics/event_record.h"

namespace simclr {

// All functions throw Error(kOutput) with the path and the system's reason.
class EventFile {
 public:
  // steps_done: 0 for a run from scratch, which removes the event files of an earlier run in this folder.
  EventFile(const std::filesystem::path& run_folder, int64_t steps_done);

  // The numbers of a line of metrics.jsonl (metrics_file.h) except step and epoch: train/NAME if the line has a loss,
  // evaluate/NAME otherwise.
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
