#!/usr/bin/env bash
# Checks format and lints; changes nothing. `scripts/lint.sh format` and `scripts/lint.sh tidy` do one of the two.
# To reformat: git ls-files '*.hpp' '*.cpp' | xargs clang-format-16 -i
set -euo pipefail
cd "$(dirname "$0")/.."

check_format() {
  git ls-files -z -- '*.hpp' '*.cpp' | xargs -0 clang-format-16 --dry-run --Werror
}

# Sources of the library and of the command, with the headers that they include.
run_tidy() {
  cmake -S . -B build/lint -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER=clang++-16 \
    -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DDLOCK_BUILD_TESTS=OFF -DDLOCK_BUILD_EXAMPLES=OFF > /dev/null
  local output
  output=$(run-clang-tidy-16 -quiet -p build/lint "^$PWD/(src|backends|cli)/" 2>&1 < /dev/null) && return
  # Once for each finding, though it be in a header that many include; all of it if it is something else that is wrong.
  grep -E ': (error|warning): |^error: ' <<< "$output" | sort -u || echo "$output"
  return 1
}

case "${1:-all}" in
  format) check_format ;;
  tidy) run_tidy ;;
  all) check_format && run_tidy ;;
  *)
    echo "usage: scripts/lint.sh [format|tidy|all]" >&2
    exit 64
    ;;
esac
