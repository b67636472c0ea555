// A library for LD_PRELOAD: writes the name of every MPI call of a process, of NCCL's start, and of the CUDA calls that
// allocate or wait for the device, to the file that SIMCLR_MPI_CALLS names (plus the process id). MPI's profiling
// interface (PMPI_*) and the dynamic linker's next symbol do the work. The MPI functions are those that src/comm uses; the
// test compares this list with the program's imports. CUDA's are seen where its runtime is a shared library, as the
// emulator's is.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <mpi.h>
#include <nccl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

void note(const char* call) {
  static std::FILE* const file = [] {
    const char* path = std::getenv("SIMCLR_MPI_CALLS");
    return path ? std::fopen((std::string(path) + "." + std::to_string(::getpid())).c_str(), "w") : nullptr;
  }();
  if (!file) return;
  std::fprintf(file, "%s\n", call);
  std::fflush(file);
}

}  // namespace

#define FORWARD(name, parameters, arguments) \
  int MPI_##name parameters {                \
    note("MPI_" #name);                      \
    return PMPI_##name arguments;            \
  }

extern "C" {
FORWARD(Init_thread, (int* argc, char*** argv, int required, int* provided), (argc, argv, required, provided))
FORWARD(Finalize, (), ())
FORWARD(Abort, (MPI_Comm comm, int code), (comm, code))
FORWARD(Comm_rank, (MPI_Comm comm, int* rank), (comm, rank))
FORWARD(Comm_size, (MPI_Comm comm, int* size), (comm, size))
FORWARD(Comm_set_errhandler, (MPI_Comm comm, MPI_Errhandler handler), (comm, handler))
FORWARD(Barrier, (MPI_Comm comm), (comm))
FORWARD(Bcast, (void* data, int count, MPI_Datatype type, int root, MPI_Comm comm), (data, count, type, root, comm))
FORWARD(Allgather,
        (const void* send, int send_count, MPI_Datatype send_type, void* receive, int receive_count,
         MPI_Datatype receive_type, MPI_Comm comm),
        (send, send_count, send_type, receive, receive_count, receive_type, comm))
FORWARD(Allgatherv,
        (const void* send, int send_count, MPI_Datatype send_type, void* receive, const int* counts, const int* offsets,
         MPI_Datatype receive_type, MPI_Comm comm),
        (send, send_count, send_type, receive, counts, offsets, receive_type, comm))
FORWARD(Allreduce, (const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
        (send, receive, count, type, op, comm))
FORWARD(Reduce_scatter_block, (const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
        (send, receive, count, type, op, comm))
FORWARD(Irecv, (void* data, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request* request),
        (data, count, type, source, tag, comm, request))
FORWARD(Isend, (const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request),
        (data, count, type, to, tag, comm, request))
FORWARD(Waitall, (int count, MPI_Request* requests, MPI_Status* statuses), (count, requests, statuses))

#define NEXT(result, name, parameters, arguments)                           \
  result name parameters {                                                  \
    note(#name);                                                            \
    using Function = result(*) parameters;                                  \
    return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, #name)) arguments; \
  }

NEXT(ncclResult_t, ncclCommInitRank, (ncclComm_t * comm, int size, ncclUniqueId id, int rank), (comm, size, id, rank))
NEXT(cudaError_t, cudaMalloc, (void** memory, size_t bytes), (memory, bytes))
NEXT(cudaError_t, cudaFree, (void* memory), (memory))
NEXT(cudaError_t, cudaMallocHost, (void** memory, size_t bytes), (memory, bytes))
NEXT(cudaError_t, cudaFreeHost, (void* memory), (memory))
NEXT(cudaError_t, cudaStreamSynchronize, (cudaStream_t stream), (stream))
NEXT(cudaError_t, cudaDeviceSynchronize, (), ())
NEXT(cudaError_t, cudaMemcpy, (void* to, const void* from, size_t bytes, cudaMemcpyKind kind), (to, from, bytes, kind))
}
