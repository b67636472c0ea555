#!/usr/bin/env bash
# Mutation test: puts one small mistake at a time into a copy of the sources (a sign, a comparison, an index one off, a
# reduction), builds the tests of that folder and demands that one fails. Mistakes that survive are printed with file,
# line and the mutated line. The working tree is only read; the copy and its build are in build/mutate and are reused.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v ccache >/dev/null && export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR="$PWD/build/mutate/source" CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
PYTHONDONTWRITEBYTECODE=1 exec python3 scripts/mutate/run.py "$@"
