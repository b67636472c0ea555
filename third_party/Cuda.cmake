# The CUDA backend: found, left out, or executed on the CPU.
#   SIMCLR_CUDA = AUTO      built when nvcc, NCCL and cuDNN are there
#                 ON        the same, and an error when one is missing
#                 OFF       CPU program
#                 EMULATED  the same sources compiled by the C++ compiler against emulator/ (tests without a GPU)
# Sets SIMCLR_CUDA_MODE (NONE, NVCC, EMULATED) and the target simclr_cuda_toolkit, which CUDA code links.
# The wheels' layout (nvidia/cudnn, nvidia/nccl): -DNVIDIA_WHEELS=…/site-packages/nvidia.
set(SIMCLR_CUDA AUTO CACHE STRING "CUDA backend: AUTO, ON, OFF or EMULATED")
set_property(CACHE SIMCLR_CUDA PROPERTY STRINGS AUTO ON OFF EMULATED)
set(SIMCLR_CUDA_MODE NONE)

macro(simclr_find_cuda)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)  # before the language is enabled
    set(CMAKE_CUDA_ARCHITECTURES 80 90 CACHE STRING "GPU generations that are compiled for")
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25.1 does not know nvcc's C++20 yet
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    endif()
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    set(CMAKE_CUDA_EXTENSIONS OFF)
    find_package(CUDAToolkit 12.4)
    find_package(NCCL)
    find_package(CUDNN 9.8)
  endif()
endmacro()

if(SIMCLR_CUDA STREQUAL "EMULATED")
  find_path(SIMCLR_CUDA_INCLUDE_DIR cuda_runtime_api.h HINTS $ENV{CUDA_PATH} /usr/local/cuda PATH_SUFFIXES include)
  find_path(SIMCLR_CUDNN_INCLUDE_DIR cudnn_backend.h HINTS ${SIMCLR_CUDA_INCLUDE_DIR} ${NVIDIA_WHEELS}/cudnn PATH_SUFFIXES include)
  find_path(SIMCLR_NCCL_INCLUDE_DIR nccl.h HINTS ${SIMCLR_CUDA_INCLUDE_DIR} ${NVIDIA_WHEELS}/nccl PATH_SUFFIXES include)
  if(NOT SIMCLR_CUDA_INCLUDE_DIR OR NOT SIMCLR_CUDNN_INCLUDE_DIR OR NOT SIMCLR_NCCL_INCLUDE_DIR)
    message(FATAL_ERROR "SIMCLR_CUDA=EMULATED needs the headers of the CUDA toolkit, cuDNN and NCCL (no GPU, no nvcc): "
      "set CUDA_PATH, or -DNVIDIA_WHEELS for cuDNN and NCCL from Python wheels")
  endif()
  set(SIMCLR_CUDA_MODE EMULATED)
  set(SIMCLR_CUDA_HEADERS ${SIMCLR_CUDA_INCLUDE_DIR} ${SIMCLR_CUDNN_INCLUDE_DIR} ${SIMCLR_NCCL_INCLUDE_DIR})
elseif(NOT SIMCLR_CUDA STREQUAL "OFF")
  simclr_find_cuda()
  if(CUDAToolkit_FOUND AND NCCL_FOUND AND CUDNN_FOUND)
    set(SIMCLR_CUDA_MODE NVCC)
  elseif(SIMCLR_CUDA STREQUAL "ON")
    message(FATAL_ERROR "SIMCLR_CUDA=ON, but nvcc, the toolkit (12.4 or newer), NCCL or cuDNN 9 was not found")
  endif()
endif()

add_library(simclr_cuda_toolkit INTERFACE)
if(SIMCLR_CUDA_MODE STREQUAL "NVCC")
  target_link_libraries(simclr_cuda_toolkit INTERFACE CUDA::cudart_static CUDA::cublas CUDNN::cudnn NCCL::nccl)
  set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
  message(STATUS "CUDA ${CUDAToolkit_VERSION} for ${CMAKE_CUDA_ARCHITECTURES}, cuDNN ${CUDNN_VERSION}, NCCL ${NCCL_VERSION}")
elseif(SIMCLR_CUDA_MODE STREQUAL "EMULATED")
  target_link_libraries(simclr_cuda_toolkit INTERFACE simclr_emulator)
  set(BUILD_SHARED_LIBS ON)  # one copy of everything, whichever library the emulator's kernels stand in
  message(STATUS "CUDA sources are executed on the CPU (${SIMCLR_CUDA_INCLUDE_DIR})")
else()
  message(STATUS "without CUDA: the program trains on CPUs")
endif()

# What belongs to the mode alone is another folder of headers, never an #ifdef in a caller.
if(SIMCLR_CUDA_MODE STREQUAL "NONE")
  set(SIMCLR_DEVICES_DIR without_cuda)
else()
  set(SIMCLR_DEVICES_DIR with_cuda)
endif()

# simclr_cuda_sources(TARGET FILES...): adds CUDA sources to a library, or nothing when there is no CUDA. Emulated
# kernels form a shared library of their own: its thread-local block is the static __shared__ memory.
function(simclr_cuda_sources target)
  if(SIMCLR_CUDA_MODE STREQUAL "NONE")
    return()
  endif()
  set(device ${ARGN})
  list(FILTER device INCLUDE REGEX "\\.cu$")
  set(host ${ARGN})
  list(FILTER host EXCLUDE REGEX "\\.cu$")
  target_link_libraries(${target} PUBLIC simclr_cuda_toolkit)
  target_sources(${target} PRIVATE ${host})
  if(SIMCLR_CUDA_MODE STREQUAL "NVCC")
    target_sources(${target} PRIVATE ${device})
    # constexpr functions of the headers (philox, round_up) run on the device too. fmt 9 takes constexpr away from
    # nvcc, and then calls its own constexpr functions from such.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings -Xcompiler=-Wall,-Wextra
      -Xptxas=--warn-on-spills --expt-relaxed-constexpr -DFMT_USE_CONSTEXPR=1
      -diag-suppress=554>)  # a conversion that its requires-clause takes out (views.h) will not be called: as meant
  elseif(device)
    set_source_files_properties(${device} PROPERTIES LANGUAGE CXX)
    add_library(${target}_cuda SHARED ${device})
    target_compile_options(${target}_cuda PRIVATE -ftls-model=initial-exec -Wno-unknown-pragmas)
    target_link_libraries(${target}_cuda PUBLIC simclr_options simclr_cuda_toolkit simclr_kernels_common)
    target_link_libraries(${target} PUBLIC ${target}_cuda)
  endif()
endfunction()
