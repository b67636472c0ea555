// How ranks stay together at start and at every other point outside the step: an error of one becomes the error of all,
// so that it is printed once and every rank leaves in order; facts that must be equal are compared.
// Within a step the control channel does this.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "kernels/common/error.h"
#include "src/comm/collectives.h"

namespace simclr {

// An Error that every rank has thrown at the same point: they may leave in order (Runtime::shut_down), rank 0 prints it.
class AgreedError : public Error {
 public:
  using Error::Error;
};

// Every rank brings its error or none. Returns when none has one; else ALL throw the error of the lowest failing rank
// as AgreedError, with rank and host named unless all ranks failed alike. Where the collectives themselves fail, a rank
// throws its own error if it has one.
void agree(Collectives& collectives, const std::optional<Error>& mine);

// What was caught, as an Error: another exception is a defect (kOther), lack of memory is kDevice.
Error as_error(std::exception_ptr caught);

// Runs work on every rank and agrees on how it went. Work that calls collectives itself must fail on no rank
// or on all.
template <typename Work>
auto agree_on(Collectives& collectives, Work&& work) {
  using Result = std::invoke_result_t<Work>;
  std::optional<Error> error;
  if constexpr (std::is_void_v<Result>) {
    try {
      std::forward<Work>(work)();
    } catch (...) {
      error = as_error(std::current_exception());
    }
    agree(collectives, error);
  } else {
    std::optional<Result> result;
    try {
      result.emplace(std::forward<Work>(work)());
    } catch (...) {
      error = as_error(std::current_exception());
    }
    agree(collectives, error);
    return std::move(*result);
  }
}

// The value must be the same on every rank. If not, all throw an AgreedError(code) that lists which ranks have what:
//   "configuration differs between ranks: rank 0 (n1): 5ab1…; ranks 1, 2 (n2): 77c0…; ADVICE"
void require_equal(Collectives& collectives, ExitCode code, std::string_view name, std::string_view value,
                   std::string_view advice);

}  // namespace simclr
