#include "kernels/common/elements.h"

#include "kernels/common/error.h"

namespace simclr {

void wrong_element_type(DataType stored, DataType asked) {
  fail(ExitCode::kOther, "internal error: elements of {} bytes are stored, elements of {} bytes were asked for",
       size_of(stored), size_of(asked));
}

}  // namespace simclr
