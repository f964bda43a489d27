#!/usr/bin/env bash
# Runs every test of the release build: C++ (ctest), then Python and whole-system tests (pytest).
# Both run even if the first fails; `make test` calls this after the set-up.
# CTEST_ARGS and PYTEST_ARGS are passed on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

read -r -a ctest_args <<<"${CTEST_ARGS:-}"
read -r -a pytest_args <<<"${PYTEST_ARGS:-}"

failed=()
ctest --test-dir build/release --output-on-failure --no-tests=error -j "$(nproc)" \
  "${ctest_args[@]}" || failed+=("ctest")

folders=()
for folder in python/tests tests tools/tests; do
  if [[ -d $folder ]]; then folders+=("$folder"); fi
done
.venv/bin/python -m pytest -ra "${folders[@]}" "${pytest_args[@]}" || failed+=("pytest")

if ((${#failed[@]})); then
  echo "failed: ${failed[*]}" >&2
  exit 1
fi
