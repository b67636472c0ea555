// How the watchdog checks a communicator, from its own thread and without blocking.
#pragma once

#include <string>

namespace simclr {

class CommunicatorHealth {
 public:
  virtual ~CommunicatorHealth() = default;
  virtual std::string error() noexcept = 0;  // the library's text for an asynchronous error; empty: none
  virtual void abort() noexcept = 0;         // releases every call that is blocked in it
};

}  // namespace simclr
