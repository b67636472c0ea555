#include "src/comm/make_collectives.h"

#include "src/comm/mpi_collectives.h"
#include "src/comm/single_process_collectives.h"

namespace simclr {

std::unique_ptr<Collectives> make_collectives(const MpiSession& session, Reduction reduction,
                                              CollectiveObserver* observer) {
  if (!session.uses_mpi()) return std::make_unique<SingleProcessCollectives>();
  if (reduction == Reduction::kFastest) return std::make_unique<FastestMpiCollectives>(session, observer);
  return std::make_unique<MpiCollectives>(session, observer);
}

}  // namespace simclr
