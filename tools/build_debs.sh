#!/usr/bin/env bash
# Builds the core in build/deb/ and makes its Debian packages in dist/ (or the folder given as argument).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The name by which the set-up calls the same compiler: ccache tells them apart.
export CXX=${CXX:-g++}
target=${1:-dist}
log=build/logs/deb.log
mkdir -p "$target" "$(dirname "$log")"
echo "building the core (log: $log) …"
if ! {
  cmake --preset deb && cmake --build --preset deb &&
    cpack --config build/deb/CPackConfig.cmake -B build/deb/packages
} >"$log" 2>&1; then
  tail -n 40 "$log" >&2
  echo "make deb: failed; the whole log is $log" >&2
  exit 1
fi
for package in build/deb/packages/*.deb; do
  mv "$package" "$target/"
  echo "$target/$(basename "$package")"
done
