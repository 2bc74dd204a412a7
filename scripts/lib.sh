# Functions that the scripts share; source it. Sourcing has no effect beyond defining things.

# What building the library and the command needs (Debian 12).
DLOCK_BUILD_PACKAGES=(g++ cmake ninja-build pkg-config libasio-dev libcli11-dev nlohmann-json3-dev libfmt-dev
  libxxhash-dev libhiredis-dev libssl-dev libzookeeper-mt-dev libpq-dev)
# What the tests and the benchmarks need beyond that.
DLOCK_TEST_PACKAGES=(libgtest-dev libgmock-dev libbenchmark-dev groff-base redis-server openssl zookeeper
  postgresql-15 pgbouncer python3-kazoo nftables faketime patch)

# dlock_install_packages [PACKAGE...]: installs those that are missing; without arguments, everything that building,
# testing and measuring needs. apt-get is not run when nothing is missing.
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
