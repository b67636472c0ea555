// Called when the main thread enters and leaves an operation that waits for other ranks; implemented by the heartbeat.
// Keeps the collectives free of any knowledge of watchdogs.
#pragma once

namespace simclr {

class CollectiveObserver {
 public:
  virtual void entered_collective() noexcept = 0;
  virtual void left_collective() noexcept = 0;

 protected:
  ~CollectiveObserver() = default;
};

// Marks the scope of one operation; an observer may be missing.
class InsideCollective {
 public:
  explicit InsideCollective(CollectiveObserver* observer) : observer_(observer) {
    if (observer_ != nullptr) observer_->entered_collective();
  }
  ~InsideCollective() {
    if (observer_ != nullptr) observer_->left_collective();
  }
  InsideCollective(const InsideCollective&) = delete;
  InsideCollective& operator=(const InsideCollective&) = delete;

 private:
  CollectiveObserver* observer_;
};

}  // namespace simclr
