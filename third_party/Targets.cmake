# Helpers that keep the CMakeLists of the folders to a few lines each.

add_library(simclr_options INTERFACE)
target_include_directories(simclr_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(simclr_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror=return-type>
  $<$<COMPILE_LANGUAGE:CXX>:-fno-semantic-interposition>)
if(SIMCLR_SANITIZE)
  target_compile_options(simclr_options INTERFACE -fsanitize=${SIMCLR_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(simclr_options INTERFACE -fsanitize=${SIMCLR_SANITIZE})
  target_compile_definitions(simclr_options INTERFACE SIMCLR_NO_MULTIVERSION)
endif()

# simclr_library(NAME SOURCES a.cpp b.cpp [CUDA a_cuda.cu] [NO_CUDA no_a.cpp] LINKS other::target ...)
# CUDA: sources that are built with CUDA only; NO_CUDA: what stands in for them without it.
function(simclr_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;CUDA;NO_CUDA;LINKS" ${ARGN})
  if(SIMCLR_CUDA_MODE STREQUAL "NONE")
    list(APPEND ARG_SOURCES ${ARG_NO_CUDA})
  endif()
  if(ARG_SOURCES)
    # Static, but for BUILD_SHARED_LIBS; compiled alike for both, so that a compiler cache serves one build with the other's.
    add_library(${name} ${ARG_SOURCES})
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON DEFINE_SYMBOL "")
    target_link_libraries(${name} PUBLIC simclr_options ${ARG_LINKS})
    if(ARG_CUDA)
      simclr_cuda_sources(${name} ${ARG_CUDA})
    endif()
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE simclr_options ${ARG_LINKS})
  endif()
endfunction()

# simclr_fast_to_compile(TEST): most of the time that a test takes to compile goes into GoogleTest's headers and the
# optimization of its macros. So the headers come precompiled, and the test itself is optimized less than what it tests.
function(simclr_fast_to_compile name)
  if(NOT TARGET simclr_test_headers)
    add_executable(simclr_test_headers EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/tests/harness/test_headers.cpp)
    target_precompile_headers(simclr_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h> <filesystem> <fstream> <functional> <random> <sstream> <thread>)
    simclr_as_test_compiles(simclr_test_headers)
  endif()
  simclr_as_test_compiles(${name})
  target_precompile_headers(${name} REUSE_FROM simclr_test_headers)
endfunction()

# GCC 12 warns of what std::string's own code does when it inlines little. UndefinedBehaviorSanitizer doubles the compile
# time of a test; it looks at the code under test.
function(simclr_as_test_compiles name)
  target_link_libraries(${name} PRIVATE simclr_options OpenMP::OpenMP_CXX Threads::Threads GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_options(${name} PRIVATE -O1 "$<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-restrict>")
  if(SIMCLR_SANITIZE)
    target_compile_options(${name} PRIVATE -fno-sanitize=undefined)
  endif()
endfunction()

# simclr_test(NAME SOURCES a_test.cpp LINKS simclr_x [LABELS unit] [TIMEOUT 60]): one GoogleTest binary, one ctest entry.
function(simclr_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LINKS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE simclr_options ${ARG_LINKS})
  simclr_fast_to_compile(${name})
  add_test(NAME ${name} COMMAND ${name})
  # With tests side by side on few cores a waiting thread must sleep: spinning took one of them from 0.5 s to 14 s.
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT} ENVIRONMENT "OMP_WAIT_POLICY=passive")
endfunction()

# simclr_mpi_test(NAME RANKS n COMMAND program args... [TIMEOUT s]): a program under mpirun, any user, any core count.
function(simclr_mpi_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT;RANKS" "COMMAND;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS mpi)
  endif()
  add_test(NAME ${name} COMMAND ${MPIEXEC_EXECUTABLE} --oversubscribe --bind-to none -np ${ARG_RANKS} ${ARG_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT} PROCESSORS 2
    ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMP_WAIT_POLICY=passive;OMPI_MCA_mpi_yield_when_idle=1")
endfunction()

# All binaries of simclr_cuda_test.
add_custom_target(simclr_cuda_tests)

# simclr_cuda_test(NAME SOURCES a_cuda_test.cpp LINKS ...): a test of CUDA code, built with CUDA only. On the emulator it
# runs in three orders of threads and blocks, with streams that run at once and streams that run late.
function(simclr_cuda_test name)
  if(SIMCLR_CUDA_MODE STREQUAL "NONE")
    return()
  endif()
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LINKS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE simclr_options ${ARG_LINKS} simclr_cuda_toolkit)
  simclr_fast_to_compile(${name})
  add_dependencies(simclr_cuda_tests ${name})
  if(SIMCLR_CUDA_MODE STREQUAL "NVCC")
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES LABELS "cuda;${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT} RESOURCE_LOCK gpu)
    return()
  endif()
  foreach(setting forward_eager reverse_lazy random_random)
    string(REPLACE "_" ";" parts ${setting})
    list(GET parts 0 order)
    list(GET parts 1 streams)
    add_test(NAME ${name}_${setting} COMMAND ${name})
    # OpenMP's runtime is not built for ThreadSanitizer: what it does between threads is not looked at.
    set_tests_properties(${name}_${setting} PROPERTIES LABELS "cuda;kernel;${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT}
      ENVIRONMENT "OMP_WAIT_POLICY=passive;EMULATOR_ORDER=${order};EMULATOR_STREAMS=${streams};TSAN_OPTIONS=atexit_sleep_ms=0:suppressions=${CMAKE_SOURCE_DIR}/emulator/thread_sanitizer.supp")
  endforeach()
endfunction()
