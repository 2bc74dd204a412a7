# Functions shared by the scripts; source it. Sourcing only defines things.

# Packages needed to build the library and the command (Debian 12).
DLOCK_BUILD_PACKAGES=(g++ cmake ninja-build pkg-config libasio-dev libcli11-dev nlohmann-json3-dev libfmt-dev
  libxxhash-dev libhiredis-dev libssl-dev libzookeeper-mt-dev libpq-dev libmariadb-dev libnghttp2-dev)
# Packages that the tests and the benchmarks need in addition.
DLOCK_TEST_PACKAGES=(libgtest-dev libgmock-dev libbenchmark-dev libboost1.81-dev groff-base redis-server openssl
  zookeeper etcd-server etcd-client postgresql-15 pgbouncer mariadb-server-core mariadb-client-core python3-kazoo python3-redis libcurator-recipes-java
  librhino-java liblua5.1-0-dev nftables faketime patch make python3-yaml zsh fish systemd libspdlog-dev
  prometheus-cpp-dev)
# Clang with its sanitizers. llvm-16 provides function names in reports, by which suppressions work.
DLOCK_SANITIZER_PACKAGES=(clang-16 libclang-rt-16-dev lld-16 llvm-16)
DLOCK_LINT_PACKAGES=(git clang-16 clang-format-16 clang-tidy-16)

# Options of cmake: many sources at once; and, for the preset dev, as users build it. Tests and benchmarks are not
# optimised, which would double their compile time.
DLOCK_UNITY=(-DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=64)
DLOCK_OPTIMISED=(-DCMAKE_BUILD_TYPE=RelWithDebInfo '-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-g1 -DNDEBUG'
  -DDLOCK_LIBRARY_COMPILE_OPTIONS=-O2)
# For builds that take longer than their tests: otherwise the linker would copy a static library into each program. An
# assertion knows its line without debug information.
DLOCK_SOON_BUILT=(-DBUILD_SHARED_LIBS=ON -DCMAKE_SHARED_LINKER_FLAGS=-Wl,-Bsymbolic-functions
  -DDLOCK_TEST_COMPILE_OPTIONS=-g0)

# dlock_install_packages [PACKAGE...]: installs missing packages; without arguments, all packages for building, testing
# and measuring. Does not run apt-get if none is missing.
dlock_install_packages() {
  local package
  local -a wanted=("$@") missing=() as_root=()
  ((${#wanted[@]} > 0)) || wanted=("${DLOCK_BUILD_PACKAGES[@]}" "${DLOCK_TEST_PACKAGES[@]}")
  if ! command -v dpkg-query >/dev/null; then
    echo "not a Debian system; these are needed under whatever name they have here: ${wanted[*]}" >&2
    return 0
  fi
  for package in "${wanted[@]}"; do
    if [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) != installed ]]; then
      missing+=("$package")
    fi
  done
  ((${#missing[@]} > 0)) || return 0
  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
      echo "missing packages, and neither root nor sudo to install them: ${missing[*]}" >&2
      return 1
    fi
    as_root=(sudo)
  fi
  echo "installing ${missing[*]}" >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq </dev/null >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" \
    </dev/null >&2
}

# A tree is a directory below build/, made from a preset.
dlock_configure() { # TREE PRESET [OPTION of cmake...]
  local -a launcher=()
  if command -v ccache >/dev/null; then
    launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
    export CCACHE_SLOPPINESS=pch_defines,time_macros # without these it leaves out what uses precompiled headers
    # GCC's precompiled header has a checksum of each header in it, comments included. If only a comment has changed, the
    # preprocessed text is the same, so ccache would return the old precompiled header, and GCC would report
    # redefinitions. In depend mode ccache compares the headers. The name space excludes entries made without it.
    export CCACHE_DEPEND=1 CCACHE_NAMESPACE=dlock-depend
  fi
  mkdir -p build
  cmake --preset "$2" -B "build/$1" "${launcher[@]}" "${@:3}" >build/"$1".log || {
    cat build/"$1".log
    return 1
  }
}

# A compiler allocates a lot of memory and frees none; in large pieces, that costs fewer page faults.
dlock_make() { # TREE [TARGET...]
  GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.top_pad=67108864:glibc.malloc.trim_threshold=1073741824 \
    cmake --build "build/$1" --parallel "$(nproc)" -- --quiet "${@:2}"
}

dlock_build() { # TREE PRESET [OPTION of cmake...]
  dlock_configure "$@"
  dlock_make "$1"
}

# The recently changed files: since the last pushed commit or, if that is the last commit or unknown, in the four hours
# before it; without a history, all files. Sources in which only comments have changed are left out.
dlock_changed_files() {
  local base file
  base=$(git merge-base HEAD '@{upstream}' 2>/dev/null || true)
  if [[ -z $base || $base == "$(git rev-parse HEAD)" ]]; then
    base=$(git rev-list -1 --before="$(($(git log -1 --format=%ct) - 4 * 3600))" HEAD 2>/dev/null || true)
  fi
  if [[ -z $base ]]; then
    git ls-files 2>/dev/null || find . -type f -printf '%P\n'
    return
  fi
  git diff --name-only "$base" | while read -r file; do
    if [[ $file != *.?pp || ! -e $file ||
      "$(git show "$base:$file" 2>/dev/null | dlock_code)" != "$(dlock_code <"$file")" ]]; then
      echo "$file"
    fi
  done
}

# Standard input, a source, without its comments.
dlock_code() { g++ -x c++ -fpreprocessed -dD -E -P - 2>/dev/null; }

# Most tests mostly wait; still, too many at once would starve each other's servers. The guard is long, because tests do
# not check how long things take that only have to happen at some time.
dlock_run_tests() { # TREE [OPTION of ctest...]
  export DLOCK_CONFORMANCE_GUARD_MS=${DLOCK_CONFORMANCE_GUARD_MS:-120000}
  local status=0
  ctest --test-dir "build/$1" --output-on-failure --no-tests=error --parallel "$((2 * $(nproc)))" "${@:2}" || status=$?
  ((status == 0)) || dlock_tell_failures "build/$1/Testing/Temporary/LastTest.log"
  return "$status"
}

# The failures in programs with many tests, in a few lines at the end.
dlock_tell_failures() { # LOG of ctest
  echo
  echo "What failed:"
  sed -n '/: Failure$/,/^\[  FAILED  \]/p' "$1" | head -100
}

dlock_sanitizer_settings() {
  # Quarantine and stack traces of memory are kept short: most of a test's time goes into memory that was not
  # used before. Keeping stack frames after a return, to detect their use, would cost as much time again.
  export ASAN_OPTIONS=strict_string_checks=1:quarantine_size_mb=16:malloc_context_size=10
  ASAN_OPTIONS+=:detect_stack_use_after_return=0
  export UBSAN_OPTIONS=print_stacktrace=1
  export LSAN_OPTIONS=suppressions=$PWD/tests/lsan.supp:print_suppressions=0
  export TSAN_OPTIONS="second_deadlock_stack=1:suppressions=$PWD/tests/tsan.supp"
}

# Tests do not depend on the disk's speed for several servers: files are kept in memory, if there is room for several
# servers, and programs can be run from there, as some tests do.
dlock_keep_files_in_memory() {
  [[ -z ${TMPDIR:-} ]] || return 0
  [[ -w /dev/shm && ,$(findmnt --noheadings --output OPTIONS --target /dev/shm), != *,noexec,* ]] || return 0
  (($(df --output=avail --block-size=1M /dev/shm | tail -1) >= 4096)) || return 0
  (($(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo) >= 8192)) || return 0
  export TMPDIR=/dev/shm
}
