#!/usr/bin/env bash
# Reports what differs from the project's style and rules; changes nothing. Runs every check even if
# one fails. `make lint` calls it after the set-up, whose compile commands clang-tidy needs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=()

# check <name> <command…>: runs one check under a header line, and notes its failure.
check() {
  local name=$1
  shift
  echo "--- $name"
  "$@" || failed+=("$name")
}

clang_format() {
  local files
  mapfile -d '' -t files < <(
    git ls-files -z --cached --others --exclude-standard -- '*.cc' '*.hh'
  )
  if ((${#files[@]})); then
    .venv/bin/clang-format --dry-run -Werror "${files[@]}"
  fi
}

clang_tidy() {
  # The plug-ins are projects of their own: without their compile commands the others are checked.
  .venv/bin/python tools/plugin_build.py configure || failed+=("configuring plug-ins")
  .venv/bin/python tools/run_clang_tidy.py
}

check "layers" .venv/bin/python tools/check_layers.py
check "clang-format" clang_format
check "ruff check" .venv/bin/ruff check .
check "ruff format" .venv/bin/ruff format --check .
check "mypy" .venv/bin/mypy
check "clang-tidy" clang_tidy

if ((${#failed[@]})); then
  printf -v names '%s, ' "${failed[@]}"
  echo "lint failed: ${names%, } (make format mends formatting)" >&2
  exit 1
fi
echo "lint passed"
