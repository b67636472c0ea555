// One run at a time in a run folder. RUN_FOLDER/lock is held by flock(2) for as long as the process lives, so a killed
// process leaves no lock behind; the file itself stays and says who holds it, or held it last. Not for single files.
#pragma once

#include <filesystem>
#include <string>

#include "src/base/beat.h"
#include "src/base/file_handle.h"

namespace simclr {

class FolderLock {
 public:
  // Takes the lock, waiting up to patience_s for a process that is about to end (a killed launcher's ranks live on for
  // a second). Error(kOutput) that names the holder's process, host and start when it is still there, or the path and
  // the system's reason. A file system without locks gives a lock that is not held: see warning().
  explicit FolderLock(const std::filesystem::path& folder, double patience_s = 5, const Beat& beat = no_beat);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  // One line for the log when nothing keeps another run out of the folder; else empty.
  const std::string& warning() const { return warning_; }

 private:
  FileHandle file_;
  std::string warning_;
};

}  // namespace simclr
