#!/usr/bin/env bash
# Installs the packages that simclr_train is built from, on Debian 12, Debian 13 and Ubuntu 24.04.
# It changes nothing when everything is installed. On another system it only lists what is missing.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: scripts/install_deps.sh [--dev] [--list]
  --dev   also the tools that check the sources (clang-format, clang-tidy, git) and the packages of the CUDA tests on the CPU
  --list  print the packages and what each is for, install nothing
TEXT
}

# One line per package: name, then its purpose.
packages() {
  cat <<'TEXT'
g++                the compiler, C++20
cmake              the build, 3.25 or newer
ninja-build        the build tool that the presets use
libopenmpi-dev     MPI: how ranks talk to each other
openmpi-bin        mpirun
libdnnl-dev        oneDNN: convolutions and matrix products on the CPU
libyaml-cpp-dev    configuration files
libspdlog-dev      the log
libfmt-dev         text formatting
libcli11-dev       the command line
nlohmann-json3-dev metrics.jsonl and the headers of checkpoints
libssl-dev         SHA-256 of checkpoints and configurations
libjpeg-dev        JPEG images (libjpeg-turbo)
libpng-dev         PNG images, in and out
zlib1g-dev         data sets in .gz files
libeigen3-dev      eigenvalues and principal components
libgtest-dev       the tests
libgmock-dev       the tests
libbenchmark-dev   the benchmarks
python3            the tests that run programs from outside, the checks in .ci
TEXT
  [ "$dev" = 0 ] || cat <<'TEXT'
clang-format       style of the sources
clang-tidy         static checks
libomp-dev         omp.h for clang-tidy
git                the list of changed files
libboost-context-dev fibers: the threads of CUDA kernels that tests run on the CPU
TEXT
}

say() { echo "install_deps: $*"; }
die() {
  echo "install_deps: $*" >&2
  exit 1
}

# The packages of packages() that dpkg does not have.
missing_packages() {
  local name installed
  installed=" $(dpkg-query -W -f='${Package}/${db:Status-Status}\n' 2>/dev/null | tr '\n' ' ')"
  packages | while read -r name _; do
    [[ "$installed" == *" $name/installed "* ]] || echo "$name"
  done
}

# What is missing, judged by the tools and headers themselves: for systems without these packages.
missing_files() {
  local tool header
  for tool in g++ cmake ninja mpicxx mpirun; do command -v "$tool" >/dev/null || echo "$tool"; done
  command -v g++ >/dev/null || return 0
  for header in oneapi/dnnl/dnnl.hpp yaml-cpp/yaml.h spdlog/spdlog.h fmt/format.h CLI/CLI.hpp nlohmann/json.hpp \
    openssl/evp.h jpeglib.h png.h zlib.h eigen3/Eigen/Core gtest/gtest.h gmock/gmock.h benchmark/benchmark.h; do
    echo "#include <$header>" | g++ -std=c++20 -E -x c++ - >/dev/null 2>&1 || echo "$header"
  done
}

check_cmake() {
  local version
  version=$(cmake --version | awk 'NR == 1 {print $3}')
  [ "$(printf '%s\n' 3.25 "$version" | sort -V | head -n 1)" = 3.25 ] ||
    die "cmake $version ($(command -v cmake)) is too old; install 3.25 or newer and put it first in PATH"
}

# Lists and packages come over the network, which fails at times: three tries. A source that does not answer and is
# not needed (update fails, install does not) is not an error.
install_packages() {
  local try log
  log=$(mktemp "${TMPDIR:-/tmp}/install_deps.XXXXXX.log")
  for try in 1 2 3; do
    "${as_root[@]}" apt-get "${apt_options[@]}" -o APT::Update::Error-Mode=any update >>"$log" 2>&1 </dev/null ||
      say "apt-get update reported errors; continuing with the existing package lists"
    if "${as_root[@]}" apt-get "${apt_options[@]}" install -y --no-install-recommends "$@" >>"$log" 2>&1 </dev/null; then
      rm -f "$log"
      return 0
    fi
    say "attempt $try of 3 failed"
    [ "$try" = 3 ] || sleep $((try * 10))
  done
  tail -n 15 "$log" >&2
  die "apt-get could not install: $*; the whole output is in $log"
}

dev=0
list=0
for argument in "$@"; do
  case $argument in
    --dev) dev=1 ;;
    --list) list=1 ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && die "unknown argument: $argument" ;;
  esac
done
[ "$list" = 0 ] || { packages && exit 0; }

system=$(. /etc/os-release 2>/dev/null && echo "${ID:-unknown} ${VERSION_ID:-}" || echo unknown)
case $system in
  "debian 12" | "debian 13" | "ubuntu 24.04") ;;
  *)
    missing=$(missing_files | paste -sd ' ')
    if [ -z "$missing" ]; then
      check_cmake
      say "$system is not supported by this script, but everything is installed"
      exit 0
    fi
    packages >&2
    die "$system is not supported by this script (Debian 12, Debian 13, Ubuntu 24.04). Missing: $missing; install the packages listed above under their names on your system"
    ;;
esac

read -r -a missing <<<"$(missing_packages | tr '\n' ' ')"
if [ "${#missing[@]}" -eq 0 ]; then
  check_cmake
  say "everything is installed"
  exit 0
fi

# DPkg::Lock::Timeout: another apt-get may be at work, wait for it instead of failing.
apt_options=(-qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -o Dpkg::Use-Pty=0)
as_root=(env DEBIAN_FRONTEND=noninteractive)
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null ||
    die "not root and no sudo; as root, run: apt-get install --no-install-recommends ${missing[*]}"
  as_root=(sudo env DEBIAN_FRONTEND=noninteractive)
  # Asked here, where a password can be typed; apt-get itself gets no standard input.
  sudo -v || die "sudo was refused; as root, run: apt-get install --no-install-recommends ${missing[*]}"
fi

say "installing ${#missing[@]} packages with apt-get:"
packages | while read -r name reason; do
  [[ " ${missing[*]} " != *" $name "* ]] || printf '  %-18s %s\n' "$name" "$reason"
done
install_packages "${missing[@]}"
check_cmake
say "done"
