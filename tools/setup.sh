#!/bin/sh
# Installs what a step needs and is missing, and nothing when nothing is:
#   setup.sh build   compiler, CMake, Ninja, Python, and the pinned WebGPU library with its headers
#   setup.sh run     a Vulkan loader, and a software device where there is no GPU
#   setup.sh lint    clang and clang-format
#   setup.sh swift   SwiftShader, the second software device (inside Debian's chromium)
#   setup.sh dawn    Dawn, the second WebGPU library
# Debian packages are installed where this runs as root on Debian; elsewhere one sentence says what
# to install. Everything else goes below build/deps.
set -eu
cd "$(dirname "$0")/.."
deps=build/deps
mkdir -p "$deps"

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }
any_of() { for file in "$@"; do [ -e "$file" ] && return 0; done; return 1; }

# packages WHY PACKAGE…
packages() {
  why=$1
  shift
  if [ "$(id -u)" = 0 ] && have apt-get; then
    say "installing $* ($why)"
    log=$deps/apt.log
    if ! DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" >"$log" 2>&1; then
      apt-get update >>"$log" 2>&1 || true
      DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" >>"$log" 2>&1 ||
        die "installing $* failed, see $log"
    fi
  else
    die "please install $why (on Debian: apt-get install $*)"
  fi
}

platform() {
  case "$(uname -s)-$(uname -m)" in
    Linux-x86_64) echo linux-x86_64 ;;
    Linux-aarch64 | Linux-arm64) echo linux-aarch64 ;;
    Darwin-arm64) echo macos-arm64 ;;
    Darwin-x86_64) echo macos-x86_64 ;;
    *) die "no pinned WebGPU library for $(uname -s) on $(uname -m): set SCONCE_WEBGPU to one of yours" ;;
  esac
}

# fetch_wheel PACKAGE VERSION SHA256 FOLDER: a wheel from PyPI, checked and unpacked
fetch_wheel() {
  python3 -m pip --version >/dev/null 2>&1 || packages "Python's pip" python3-pip
  rm -rf "$4.tmp"
  mkdir -p "$4.tmp"
  printf '%s==%s --hash=sha256:%s\n' "$1" "$2" "$3" >"$4.tmp/requirements.txt"
  say "fetching $1 $2"
  python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
    -r "$4.tmp/requirements.txt" -d "$4.tmp" || die "could not fetch $1 $2 from PyPI"
  python3 -m zipfile -e "$4.tmp"/*.whl "$4.tmp/x"
}

wgpu() {
  [ -e "$deps/wgpu/webgpu.h" ] && return
  case "$(platform)" in
    linux-x86_64) sum=6499a31b5a29a10b4f1089fea4a0806411f42605fa86b6c0b543a07ca0de8568 lib=so ;;
    linux-aarch64) sum=00454ba1bc794d38c8365f4ad29f381b88ce0a7f115133bfaa6f1dfad7eb2764 lib=so ;;
    macos-arm64) sum=6c3f654ea01ab2de8a2903354ced02a3c6ef161d0fba1aa4fea60aa86d021908 lib=dylib ;;
    macos-x86_64) sum=cfd3967616a3c42e2b7a234407df38668c697f5aa505d56e0814d647b6746302 lib=dylib ;;
  esac
  fetch_wheel wgpu 0.32.0 "$sum" "$deps/wgpu"
  files=$deps/wgpu.tmp/x/wgpu/resources
  mkdir -p "$deps/wgpu"
  cp "$files/libwgpu_native-release.$lib" "$deps/wgpu/libwgpu_native.$lib"
  cp "$files/wgpu.h" "$deps/wgpu/wgpu.h"
  cp "$files/webgpu.h" "$deps/wgpu/webgpu.h"
  rm -rf "$deps/wgpu.tmp"
}

dawn() {
  [ -e "$deps/dawn/done" ] && return
  case "$(platform)" in
    linux-x86_64) sum=b2fe9b9a87afe991a7b0d29615b0bfc3d41c7a0ac28e9c54436676482bca2e5b lib=so ;;
    linux-aarch64) sum=9c0e02bf7596693d9adbf6bfbb1bf08ae60c61abf9fa22dff19e5afe6af276f2 lib=so ;;
    macos-arm64) sum=e599ccc4943b1b1c8a49b1de9e524fa2dac4ae23ddf166f42d79a48b3a4b55cb lib=dylib ;;
    *) die "the pinned Dawn has no build for $(platform)" ;;
  esac
  fetch_wheel litert_lm_api 0.18.1 "$sum" "$deps/dawn"
  mkdir -p "$deps/dawn"
  mv "$deps/dawn.tmp/x/litert_lm/liblitert-lm.$lib" "$deps/dawn/libwebgpu_dawn.$lib"
  rm -rf "$deps/dawn.tmp"
  touch "$deps/dawn/done"
}

build() {
  missing=
  have cc || missing="$missing gcc libc6-dev"
  have cmake || missing="$missing cmake"
  have ninja || missing="$missing ninja-build"
  have python3 || missing="$missing python3"
  [ -z "$missing" ] || packages "a C compiler, CMake, Ninja and Python" $missing
  wgpu
}

# A GPU shows up as a render node or an NVIDIA device; Metal needs no loader.
run() {
  [ "$(uname -s)" = Linux ] || return 0
  if ! ldconfig -p 2>/dev/null | grep -q 'libvulkan\.so\.1'; then
    any_of /usr/lib/*/libvulkan.so.1 /usr/lib/libvulkan.so.1 || packages "the Vulkan loader" libvulkan1
  fi
  [ -n "${VK_ICD_FILENAMES:-}${VK_DRIVER_FILES:-}" ] && return 0
  any_of /dev/dri/renderD* /dev/nvidia0 && return 0
  any_of /usr/share/vulkan/icd.d/lvp_icd*.json || packages "a software Vulkan device, since there is no GPU" mesa-vulkan-drivers
}

lint() {
  missing=
  have clang-19 || missing="$missing clang-19 libclang-rt-19-dev"
  have clang-format-19 || missing="$missing clang-format-19"
  [ -z "$missing" ] || packages "clang 19 and clang-format 19" $missing
}

swift() {
  [ "$(uname -s)" = Linux ] || die "SwiftShader is set up on Linux only"
  [ -e /usr/lib/chromium/vk_swiftshader_icd.json ] || packages "SwiftShader" chromium
}

for step in "$@"; do
  case "$step" in
    build | run | lint | swift | dawn) "$step" ;;
    *) die "unknown step '$step'" ;;
  esac
done
