#include "kernels/common/error.h"

namespace simclr {

void check_failed(const char* condition, const char* file, int line, const std::string& message) {
  fail(ExitCode::kOther, "internal error at {}:{}: {} ({}); please report it", file, line, message, condition);
}

}  // namespace simclr
