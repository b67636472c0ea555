#!/bin/sh
# Prints the Debian packages of the shared libraries that a program is linked to, one a line.
#   scripts/docker/packages_of.sh PROGRAM
set -eu
libraries=$(ldd "$1" | awk '$2 == "=>" && $3 ~ /^\// {print $3}')
for library in $libraries; do
  # dpkg knows a file by one name only: as the loader does, below /usr, or where links lead to.
  owner=$(dpkg -S "$library" 2>/dev/null || dpkg -S "/usr$library" 2>/dev/null || dpkg -S "$(readlink -f "$library")" 2>/dev/null) ||
    { echo "no package contains $library" >&2 && exit 1; }
  echo "${owner%%:*}"
done | sort -u
