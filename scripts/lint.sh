#!/usr/bin/env bash
# Checks the format and the mutants, and lints; changes nothing. `scripts/lint.sh format` does the first two, `tidy` the
# last; `scripts/lint.sh some` lints recent changes. scripts/nightly lints everything.
# To reformat: git ls-files '*.hpp' '*.cpp' | xargs clang-format-16 -i
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

check_format() {
  git ls-files -z -- '*.hpp' '*.cpp' | xargs -0 clang-format-16 --dry-run --Werror
}

# Mutants are built at night only, from patches that must apply to the current sources.
check_mutants() {
  local mutant status=0
  for mutant in tests/torture/mutants/*.patch; do
    if ! patch --dry-run --silent --fuzz=0 -p1 -i "$mutant" > /dev/null < /dev/null; then
      echo "$mutant does not fit the sources any more" >&2
      status=1
    fi
  done
  return "$status"
}

# Sources of the library and the programs, with the headers that they include. Most of the time would go into the same
# headers, so many sources are checked at once, as in a unity build. Those whose names clash then are checked one by
# one; a few are known to (SKIP_UNITY_BUILD_INCLUSION).
run_tidy() { # sources | some_sources
  local tree
  for tree in build/lint build/lint-apart; do
    cmake -S . -B "$tree" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER=clang++-16 \
      -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DDLOCK_BUILD_BENCH=ON -DDLOCK_BUILD_TORTURE=ON \
      -DCMAKE_UNITY_BUILD="$([[ $tree == build/lint ]] && echo ON || echo OFF)" -DCMAKE_UNITY_BUILD_BATCH_SIZE=64 \
      > /dev/null
  done
  local output
  output=$("$1" | sort | xargs -r -P "$(nproc)" -n 1 "$BASH" "$0" one) && return
  # Prints each finding once, even in a header that many include; for any other failure, the whole output.
  grep -E ': (error|warning): |^error: ' <<< "$output" | sort -u || echo "$output"
  return 1
}

# The compiled sources of build/lint: unity sources, and single ones.
sources() {
  sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' build/lint/compile_commands.json |
    grep -E "^$PWD/((src|backends|cli|bench|torture)/|build/lint/(src|cli|bench|torture)/.*/Unity/)"
}

# Recently changed sources, and the first one that includes a recently changed header; of a unity source, the part with
# these. clang-tidy takes the options of a source that it does not know from the one whose name is most alike.
some_sources() {
  local files changed source
  files=$(dlock_changed_files)
  changed=$(
    grep -E '\.cpp$' <<< "$files"
    sed -n 's:^\(src/\|include/\)\{0,1\}\(.*\.hpp\)$:\2:p' <<< "$files" | while read -r header; do
      git grep -lE "^#include [\"<]${header}[\">]" -- src backends cli bench torture ':!*.hpp' | head -1
    done
  ) || true
  [[ -n $changed ]] || return 0
  sources | while read -r source; do
    if [[ $source != */Unity/* ]]; then
      if grep -qF "$changed" <<< "$source"; then echo "$source"; fi
    elif grep -F "$changed" "$source" > "${source%.cxx}_some.cxx"; then
      echo "${source%.cxx}_some.cxx"
    fi
  done
}

# A source, or all sources that a unity source includes.
tidy_one() {
  local output clashing
  # Only a unity source includes sources, and only there do they see each other's names.
  output=$(clang-tidy-16 -quiet -p build/lint --checks=-bugprone-suspicious-include --extra-arg=-Wno-shadow "$1" 2>&1) &&
    return
  if [[ $1 == */unity_* && $output == *clang-diagnostic-error* ]]; then
    mapfile -t clashing < <(sed -n 's/^#include "\(.*\)"$/\1/p' "$1")
    output=$(clang-tidy-16 -quiet -p build/lint-apart "${clashing[@]}" 2>&1) && return
  fi
  echo "$output"
  return 1
}

case "${1:-all}" in
  format) check_format && check_mutants ;;
  tidy) run_tidy sources ;;
  one) tidy_one "$2" ;;  # for run_tidy
  some) check_format && check_mutants && run_tidy some_sources ;;
  all) check_format && check_mutants && run_tidy sources ;;
  *)
    echo "usage: scripts/lint.sh [format|tidy|some|all]" >&2
    exit 64
    ;;
esac
