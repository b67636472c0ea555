// How the watchdog looks after a communicator, from its own thread and without waiting for anything.
#pragma once

#include <string>

namespace simclr {

class CommunicatorHealth {
 public:
  virtual ~CommunicatorHealth() = default;
  virtual std::string error() noexcept = 0;  // the library's text for an error that came up by itself; empty: none
  virtual void abort() noexcept = 0;         // lets go of everything that is blocked in it
};

}  // namespace simclr
