# Every library comes from the system's packages (scripts/install_deps.sh); nothing is vendored.
# The names below hide the differences between Debian 12 and Ubuntu 24.04.
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
set(MPI_CXX_SKIP_MPICXX ON)  # the C interface is used; the old C++ one would bring a hundred functions along
find_package(MPI REQUIRED COMPONENTS CXX)
find_package(OneDNN 2.6 REQUIRED)
find_package(fmt REQUIRED CONFIG)
find_package(spdlog REQUIRED CONFIG)
find_package(yaml-cpp REQUIRED CONFIG)
find_package(CLI11 REQUIRED CONFIG)
find_package(nlohmann_json REQUIRED CONFIG)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(JPEG REQUIRED)  # libjpeg-turbo
find_package(PNG REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Eigen3 3.4 REQUIRED CONFIG)
# Eigen would otherwise split its products among OpenMP's threads: results would depend on their number.
target_compile_definitions(Eigen3::Eigen INTERFACE EIGEN_DONT_PARALLELIZE)

# yaml-cpp 0.7 (Debian 12) has no namespace in its target.
if(NOT TARGET yaml-cpp::yaml-cpp)
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()

# oneDNN 2.x and 3.x differ in how a primitive is described: two headers of one name, chosen here.
if(OneDNN_VERSION VERSION_GREATER_EQUAL 3)
  set(SIMCLR_ONEDNN_DIR onednn_v3)
else()
  set(SIMCLR_ONEDNN_DIR onednn_v2)
endif()
message(STATUS "oneDNN ${OneDNN_VERSION} (${SIMCLR_ONEDNN_DIR}), MPI ${MPI_CXX_VERSION}, spdlog ${spdlog_VERSION}, yaml-cpp ${yaml-cpp_VERSION}")
