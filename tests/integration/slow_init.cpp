// A library to be preloaded: MPI_Init of the rank that SLOW_INIT_RANK names takes SLOW_INIT_S seconds longer, even
// if signals arrive meanwhile. The file SLOW_INIT_FILE is created when it begins to wait.
#include <mpi.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

extern "C" int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const char *wanted = std::getenv("SLOW_INIT_RANK"), *rank = std::getenv("OMPI_COMM_WORLD_RANK"),
             *seconds = std::getenv("SLOW_INIT_S"), *file = std::getenv("SLOW_INIT_FILE");
  if (wanted != nullptr && rank != nullptr && seconds != nullptr && file != nullptr && std::string(wanted) == rank) {
    std::ofstream(file) << "waits";
    std::this_thread::sleep_for(std::chrono::duration<double>(std::atof(seconds)));
  }
  return PMPI_Init_thread(argc, argv, required, provided);
}
