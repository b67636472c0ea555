// The folder RUN/checkpoints: saves step_00000012.safetensors, keeps the last few, finds where to resume.
// One process (rank 0) works on a folder; what it finds it tells the others. Everything throws Error(kOutput).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/checkpoint/training_state.h"

namespace simclr {

// Where a run starts. Nothing in `path`: anew.
struct ResumePoint {
  std::optional<std::filesystem::path> path;
  CheckpointHeader header;              // of that file; its checksum has been verified
  std::optional<SafetensorsFile> file;  // the same, open: it can be read even after its run has removed it
  std::vector<std::string> warnings;    // one line per file that is damaged or foreign and was passed over
};

class CheckpointStore {
 public:
  // keep >= 1. Nothing happens on the disk yet. beat: called while files are written, read and verified.
  CheckpointStore(std::filesystem::path folder, int keep, Beat beat = no_beat);

  // Makes the folder and removes temporary files that an ended process left; returns their names for the log.
  std::vector<std::string> prepare() const;

  // The same folder for a thread that must not beat.
  CheckpointStore without_beat() const { return CheckpointStore(folder_, keep_); }

  // Durable on return; then, of the checkpoints up to this step by their file names, all but the last `keep` are
  // removed. A later one is never touched, nor is one under another name.
  std::filesystem::path save(const TrainingState& state) const;

  // The valid checkpoint with the largest step stored in it; neither name nor time of a file count. Files that are
  // newer and damaged are in the warnings. A folder that does not exist has none. The run may be alive: where it has
  // removed a file since the folder was listed, the folder is listed again.
  ResumePoint find_latest() const;

  // The one with the largest step in its file name, and that step; nothing is opened.
  std::optional<std::pair<int64_t, std::filesystem::path>> newest_name() const;

  // --resume auto | none | PATH.
  // auto: find_latest(); checkpoints of which none can be read are an error, so that no run begins anew by accident.
  // none: anew; a folder with checkpoints is an error, so that none of another run are mixed in or removed.
  // PATH: that file, which must be valid.
  ResumePoint resolve(const std::string& resume) const;

  // The best state so far has a place of its own, beside the folder: `auto` never resumes from it.
  std::filesystem::path best_path() const { return folder_.parent_path() / "best.safetensors"; }
  // Durable on return; in the place of the one before.
  void save_best(const TrainingState& state) const;
  // The header of the best state so far; none: no such file. One that cannot be read, or lies after `step`, is renamed
  // to NAME.set_aside (.2, .3, ... where that is taken) first, with a line for the log in `warnings`.
  std::optional<CheckpointHeader> find_best(int64_t step, std::vector<std::string>& warnings) const;

  // Renames checkpoints after `step` by their file names, likewise: a run that resumed before them makes its
  // own, and a later `auto` must not take up the old branch. Returns the new paths for the log.
  std::vector<std::filesystem::path> set_aside_after(int64_t step) const;

 private:
  ResumePoint find_latest_once(bool& some_vanished) const;
  std::filesystem::path path_of(int64_t step) const;
  std::vector<std::filesystem::path> list(std::string_view suffix) const;

  std::filesystem::path folder_;
  int keep_;
  Beat beat_;
};

// What a person names, opened: a file, or a folder for the newest valid checkpoint in its checkpoints/ or in itself. A
// warning of the log for each file that is passed over; Error(kOutput) where none is left.
SafetensorsFile open_checkpoint(const std::filesystem::path& given);

}  // namespace simclr
