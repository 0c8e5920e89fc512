#!/usr/bin/env bash
# Brings what moejit is built from and configures build/. Idempotent. Run it, or source it for its functions
# (quickstart.sh and test.sh do); changes nothing outside the repository except installing Debian packages.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build
wheels=$build/cuda-wheels
nvrtcWheel=nvidia-cuda-nvrtc==13.0.88
packages=(cmake ninja-build g++ ccache libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools
  libfmt-dev doctest-dev zlib1g-dev libzstd-dev python3 python3-pip)

say() { printf '%s\n' "$*" >&2; }
die() {
  say ""
  say "error: $1"
  shift
  for line in "$@"; do say "  $line"; done
  exit 1
}

# step NAME COMMAND...: runs the command and prints how long it took.
step() {
  local name=$1 begin=$SECONDS status=0
  shift
  say "==> $name"
  "$@" || status=$?
  say "    $name: $((SECONDS - begin)) s"
  return $status
}

# quietly LOG COMMAND...: output goes to build/LOG; on failure its last lines are shown.
quietly() {
  local log=$build/$1
  shift
  mkdir -p "$build"
  if ! "$@" >"$log" 2>&1; then
    say "    $* failed; the last lines of $log:"
    tail -n 15 "$log" | sed 's/^/    | /' >&2
    return 1
  fi
}

missing_packages() {
  local name
  for name in "${packages[@]}"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || printf '%s\n' "$name"
  done
}

# Without apt: says what has to be there, and goes on when it is.
check_by_hand() {
  local lacking=() tool
  for tool in cmake ninja g++ python3; do command -v "$tool" >/dev/null || lacking+=("$tool"); done
  [ ${#lacking[@]} -eq 0 ] || die "this is no Debian system, and these programs are not here: ${lacking[*]}" \
    "Install them, and the development files of MLIR and LLVM 22.1, fmt 9 or later and doctest; then run this again."
  say "    no apt-get: using the tools that are here; CMake will say if MLIR 22.1, fmt or doctest is not among them"
}

install_packages() {
  command -v apt-get >/dev/null || { check_by_hand; return; }
  local names=() asRoot=()
  mapfile -t names < <(missing_packages)
  [ ${#names[@]} -gt 0 ] || { say "    all there"; return 0; }
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "these packages are missing, and there is neither root nor sudo to install them" \
      "apt-get install ${names[*]}"
    asRoot=(sudo)
  fi
  say "    installing ${names[*]}"
  quietly apt-update.log "${asRoot[@]}" apt-get update ||
    die "the package lists could not be read" "Is this machine online? Installed by hand, the packages do as well:" \
      "apt-get install ${names[*]}"
  local name
  for name in "${names[@]}"; do
    apt-cache show "$name" >/dev/null 2>&1 || die "this system's package lists have no $name" \
      "Offline? $build/apt-update.log shows what was read." \
      "Debian 12 has it, the MLIR and LLVM 22 ones in its security archive (suite bookworm-security)." \
      "Elsewhere install MLIR 22.1 another way and point CMAKE_PREFIX_PATH at it."
  done
  quietly apt-install.log "${asRoot[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "${names[@]}" || die "apt-get could not install them all"
}

# Prints the folder of a libnvrtc.so.13 that the loader does not search by itself; fails when there is none at all.
nvrtc_folder() {
  local file
  { ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null | grep -q 'libnvrtc\.so\.13 ' && return 0
  for file in /usr/local/cuda*/lib64/libnvrtc.so.13 /usr/local/cuda*/targets/*/lib/libnvrtc.so.13 \
    "$wheels/nvidia/cu13/lib/libnvrtc.so.13"; do
    [ -e "$file" ] && { dirname "$file"; return 0; }
  done
  return 1
}

# NVRTC is the one part of CUDA that is needed. Where there is none, its redistributable wheel goes into build/.
provide_nvrtc() {
  local folder
  if folder=$(nvrtc_folder); then
    say "    found, ${folder:-where the loader looks}"
    return 0
  fi
  say "    none here: bringing the wheel $nvrtcWheel into build/cuda-wheels (about 90 MB)"
  quietly pip.log python3 -m pip install --no-deps --only-binary :all: --no-cache-dir --upgrade \
    --target "$wheels" "$nvrtcWheel" ||
    die "NVRTC could not be brought" "Install CUDA 13's NVRTC (libnvrtc.so.13), or make PyPI reachable, and run this again."
}

configure() {
  local options=() folder
  # Programs in build/ find the library by their run path; nothing is exported. It has to be the old DT_RPATH, which
  # also counts for libraries that libraries open: libnvrtc opens libnvrtc-builtins by name.
  folder=$(nvrtc_folder) && [ -n "$folder" ] &&
    options+=("-DCMAKE_BUILD_RPATH=$folder" "-DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags")
  # A CMakeCache.txt from another place (a copied tree) would be refused.
  if [ -e "$build/CMakeCache.txt" ] && ! grep -qx "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$build/CMakeCache.txt"; then
    rm -rf "$build/CMakeCache.txt" "$build/CMakeFiles"
  fi
  (cd "$root" && quietly configure.log cmake --preset release "${options[@]}") ||
    die "CMake could not configure build/"
}

set_up() {
  step "packages" install_packages
  step "NVRTC" provide_nvrtc
  step "configure" configure
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  set_up
fi
