#!/usr/bin/env bash
# Runs every test: C++ ones of the release build (ctest), then those of pyproject.toml's testpaths (pytest).
# Both run even if the first fails; `make test` calls this after the set-up.
# CTEST_ARGS and PYTEST_ARGS are passed on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

read -r -a ctest_args <<<"${CTEST_ARGS:-}"
read -r -a pytest_args <<<"${PYTEST_ARGS:-}"

failed=()
ctest --test-dir build/release --output-on-failure --no-tests=error -j "$(nproc)" \
  "${ctest_args[@]}" || failed+=("ctest")

.venv/bin/python tools/plugin_build.py test || failed+=("plug-ins' ctest")

.venv/bin/python -m pytest "${pytest_args[@]}" || failed+=("pytest")

if ((${#failed[@]})); then
  echo "failed: ${failed[*]}" >&2
  exit 1
fi
