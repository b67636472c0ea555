// The polite way to stop a run: SIGUSR1, SIGTERM and SIGINT ask; the control word carries the question to all ranks,
// which save a checkpoint and leave with exit code 75. More signals change nothing. SIGPIPE and
// SIGXFSZ are ignored: a closed reader or a limit on file sizes is a failed write like any other.
#pragma once

namespace simclr {

// After MPI_Init, which may set handlers of its own.
void handle_stop_signals();

// The number of the first signal that came; 0: none.
int stop_signal() noexcept;

// Asks as a signal would (a time limit, train.stop_at_step); number is what stop_signal() then tells.
void request_stop(int number) noexcept;

}  // namespace simclr
