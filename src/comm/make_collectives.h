// Chooses the implementation of Collectives for this run.
#pragma once

#include <memory>

#include "src/comm/collective_observer.h"
#include "src/comm/collectives.h"
#include "src/comm/mpi_session.h"
#include "src/config/settings.h"

namespace simclr {

// The session and the observer, which may be null, outlive what is returned.
std::unique_ptr<Collectives> make_collectives(const MpiSession& session, Reduction reduction,
                                              CollectiveObserver* observer);

}  // namespace simclr
