// main() of GoogleTest binaries that run under mpirun (simclr_mpi_test): every rank runs every test, a failure on any
// rank fails the program, and ranks that hang are ended.
#pragma once

#include "src/comm/mpi_session.h"

namespace simclr {

// The session of this process, from before the first test to after the last.
MpiSession& test_session();

}  // namespace simclr
