#!/usr/bin/env bash
# Formats C++ and Python sources in place, with the versions that requirements/dev.txt pins.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mapfile -d '' -t cpp_files < <(git ls-files -z --cached --others --exclude-standard -- '*.cc' '*.hh')
if ((${#cpp_files[@]})); then
  .venv/bin/clang-format -i "${cpp_files[@]}"
fi
.venv/bin/ruff check --fix-only --quiet .
.venv/bin/ruff format --quiet .
