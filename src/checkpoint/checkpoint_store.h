// The folder RUN/checkpoints: saves step_00000012.safetensors, keeps the last few, finds the checkpoint to resume from.
// Only one process (rank 0) uses a folder; sharing the result with the other ranks is the caller's task. Everything
// throws Error(kOutput).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/checkpoint/training_state.h"

namespace simclr {

// The checkpoint that a run resumes from; without `path` the run starts from scratch.
struct ResumePoint {
  std::optional<std::filesystem::path> path;
  CheckpointHeader header;              // of that file; its checksum has been verified
  std::optional<SafetensorsFile> file;  // that file, open: it stays readable after its run has removed it
  std::vector<std::string> warnings;    // one line for each skipped file: damaged, or not a checkpoint
};

class CheckpointStore {
 public:
  // keep >= 1. Does not access the disk yet. beat: called while files are written, read and verified.
  CheckpointStore(std::filesystem::path folder, int keep, Beat beat = no_beat);

  // Creates the folder and removes temporary files that a killed process left; returns their names for the log.
  std::vector<std::string> prepare() const;

  // The same folder for a thread that must not call beat.
  CheckpointStore without_beat() const { return CheckpointStore(folder_, keep_); }

  // Durable on return. Then removes all but the last `keep` of the checkpoints whose file names have this step or an
  // earlier one. Checkpoints of later steps and files with other names are never touched.
  std::filesystem::path save(const TrainingState& state) const;

  // The valid checkpoint with the largest step stored inside the file; file names and times are ignored. `warnings`
  // names the damaged files that were skipped. Empty for a folder that does not exist. Another process may be saving in
  // the folder: if it removes a file after the folder was listed, the folder is listed again.
  ResumePoint find_latest() const;

  // The checkpoint with the largest step in its file name, and that step; opens no file.
  std::optional<std::pair<int64_t, std::filesystem::path>> newest_name() const;

  // --resume auto | none | PATH.
  // auto: find_latest(); if there are checkpoints but none can be read, an error: no run restarts by accident.
  // none: starts from scratch; a folder with checkpoints is an error: runs are not mixed and nothing is removed.
  // PATH: that file, which must be valid.
  ResumePoint resolve(const std::string& resume) const;

  // The best state so far is saved next to the folder, not in it: `auto` never resumes from it.
  std::filesystem::path best_path() const { return folder_.parent_path() / "best.safetensors"; }
  // Durable on return; replaces the earlier best state.
  void save_best(const TrainingState& state) const;
  // The header of the best state so far; empty if there is none. A file that is unreadable or of a step after `step` is
  // renamed to NAME.set_aside (.2, .3, ... if that exists), with a line for the log in `warnings`, and counts as none.
  std::optional<CheckpointHeader> find_best(int64_t step, std::vector<std::string>& warnings) const;

  // Renames checkpoints whose file names have a step after `step` likewise: a run that resumes from an earlier one
  // writes its own, and a later `auto` must not continue the old branch. Returns the new paths for the log.
  std::vector<std::filesystem::path> set_aside_after(int64_t step) const;

 private:
  ResumePoint find_latest_once(bool& some_vanished) const;
  std::filesystem::path path_of(int64_t step) const;
  std::vector<std::filesystem::path> list(std::string_view suffix) const;

  std::filesystem::path folder_;
  int keep_;
  Beat beat_;
};

// Opens what a path from the command line names: a file, or a folder, for the newest valid checkpoint in its
// checkpoints/ or in itself. Skipped files are logged as warnings; Error(kOutput) if no checkpoint is left.
SafetensorsFile open_checkpoint(const std::filesystem::path& given);

}  // namespace simclr
