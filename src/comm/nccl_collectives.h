// Collectives over NCCL, on GPU memory: every transfer of tensors between GPUs. Asynchronous: an operation is queued on
// the communication stream, after what the computing stream has queued before and, unless started to overlap with
// the computation, before what is queued there next. Events keep the order, the host never waits.
//
// ordered_sum: grouped sends and receives bring slice r of all ranks to rank r, a kernel adds them in tree order, an
// all-gather spreads the sums: 2(W-1)/W of the buffer per rank, as a ring all-reduce moves, and deterministic. Short
// buffers go to all ranks whole and everybody adds: one round instead of two, and the same bits.
#pragma once

#include <memory>
#include <string>

#include "src/comm/collective_observer.h"
#include "src/comm/collectives.h"
#include "src/comm/communicator_health.h"
#include "src/config/settings.h"
#include "src/device/context.h"

namespace simclr {

class NcclCollectives : public Collectives {
 public:
  virtual std::shared_ptr<CommunicatorHealth> health() = 0;
};

// Collective over bootstrap (host memory), which carries the unique id from rank 0 and is not used afterwards. The
// context computes on a GPU and outlives what is returned. Takes 32 MiB of GPU memory. The observer, which may be null,
// sees NCCL's start as one wait for the other ranks.
std::unique_ptr<NcclCollectives> make_nccl_collectives(Collectives& bootstrap, Context& context, Reduction reduction,
                                                       CollectiveObserver* observer = nullptr);

// "NCCL 2.28.9"; empty in a build without CUDA.
std::string nccl_version();

}  // namespace simclr
