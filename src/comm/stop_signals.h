// How a run is asked to stop: SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGHUP and SIGXCPU, by which schedulers, containers and
// people announce that the machine is taken away (docs/signals.md). The control word carries the request to all ranks,
// which save a checkpoint and exit with code 75; before the first step they end at once (startup_stop.h). More
// signals change nothing.
#pragma once

namespace simclr {

// Before anything that takes long, MPI_Init among it, and after that once more, since an MPI may set handlers of its
// own. A signal that was ignored when the process started, as SIGHUP is below nohup, stays ignored. SIGPIPE and SIGXFSZ
// are ignored from here on: a closed reader or a limit on file sizes is a failed write like any other.
void install_signal_handlers();

// The number of the first signal that came; 0: none.
int stop_signal() noexcept;

}  // namespace simclr
