// The polite way to stop a run: SIGUSR1, SIGTERM and SIGINT ask; the control word carries the question to all ranks,
// which save a checkpoint and leave with exit code 75. More signals change nothing. SIGPIPE and
// SIGXFSZ are ignored: a closed reader or a limit on file sizes is a failed write like any other.
#pragma once

namespace simclr {

// Before anything that takes long, MPI_Init among it, and after that once more, since an MPI may set handlers of its
// own: SIGUSR1 and SIGTERM, by which schedulers tell that the machine is taken away. Until the first step they end the
// run at once (start_stop.h).
void handle_notices();

// From the first step on: these, SIGINT (which ends a start at once), SIGPIPE and SIGXFSZ.
void handle_stop_signals();

// The number of the first signal that came; 0: none.
int stop_signal() noexcept;

}  // namespace simclr
