#!/bin/sh
# Installs what a step needs and is missing, and nothing when nothing is:
#   setup.sh build   compiler, CMake, Ninja, Python, and the pinned WebGPU library with its headers;
#                    where it can, libedit, libjpeg and libpng, which the command uses if they are there
#   setup.sh run     a Vulkan loader, and a software device where there is no GPU
#   setup.sh terminal  tmux, in which the tests of chat press keys, and the shells that complete
#   setup.sh lint    clang and clang-format
#   setup.sh swift   SwiftShader, the second software device (inside Debian's chromium)
#   setup.sh dawn    Dawn, the second WebGPU library
#   setup.sh executorch   a C++ compiler, and a Python below build/ with executorch and torch (GBs)
#   setup.sh web     clang and wasm-opt for WebAssembly
#   setup.sh browsers  Node with a WebGPU of its own, Chromium, Firefox: for the web's tests
#   setup.sh bundlers  Vite, webpack and TypeScript, which the web's tests build the package with
#   setup.sh python  what the Python package's tests use: venv, and NumPy for this Python
#   setup.sh windows, macos-arm64, macos-x86_64, linux-x86_64, linux-aarch64: a compiler for that
#                    system, and its WebGPU library
#   setup.sh wine    what runs Windows programs
#   setup.sh arm     what runs Linux programs for ARM: qemu, and Debian's libraries below build/deps/arm
# Debian packages are installed where this runs as root on Debian; elsewhere one sentence says what
# to install. Everything else goes below build/deps.
set -eu
cd "$(dirname "$0")/.."
deps=build/deps
mkdir -p "$deps"

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
# It finds functions of this script too: what is a program's name is no function's, hence `step_`.
have() { command -v "$1" >/dev/null 2>&1; }
any_of() { for file in "$@"; do [ -e "$file" ] && return 0; done; return 1; }

# packages WHY PACKAGE…
packages() {
  why=$1
  shift
  if [ "$(id -u)" = 0 ] && have apt-get; then
    say "installing $* ($why)"
    log=$deps/apt.log
    # Another program may be installing at this moment: wait for it.
    install="apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends"
    export DEBIAN_FRONTEND=noninteractive
    if ! $install "$@" >"$log" 2>&1; then
      apt-get update >>"$log" 2>&1 || true
      $install "$@" >>"$log" 2>&1 || die "installing $* failed, see $log"
    fi
  else
    die "please install $why (on Debian: apt-get install $*)"
  fi
}

# fetch PACKAGE OPTION…: a pinned package, see tools/fetch.py
fetch() {
  python3 tools/fetch.py "$@" && return
  python3 -m pip --version >/dev/null 2>&1 && exit 1
  packages "Python's pip" python3-pip
  python3 tools/fetch.py "$@"
}

step_dawn() { fetch litert_lm_api --into "$deps/dawn"; }

step_windows() {
  have x86_64-w64-mingw32-gcc || packages "a compiler for Windows" gcc-mingw-w64-x86-64
  fetch wgpu --platform windows-x86_64
}

step_wine() {
  have wine || packages "wine, which runs Windows programs" wine wine64
  have Xvfb || packages "a display without a screen" xvfb
}

# Debian's packages for ARM, unpacked into a folder of their own with lists of their own: this system's
# are not touched.
step_arm() {
  have qemu-aarch64-static || packages "qemu, which runs programs for ARM" qemu-user-static
  [ -e "$deps/arm/done" ] && return
  have apt-get || die "the libraries for ARM come from Debian's packages; there is no apt-get"
  say "fetching Mesa, the Vulkan loader and Python for ARM into $deps/arm"
  rm -rf "$deps/arm"
  mkdir -p "$deps/arm/apt/lists/partial" "$deps/arm/apt/archives/partial" "$deps/arm/root"
  : >"$deps/arm/apt/status"
  there=$PWD/$deps/arm/apt
  for what in update "install -y --download-only --no-install-recommends mesa-vulkan-drivers libvulkan1 python3"; do
    apt-get -o Dir::State="$there" -o Dir::State::lists="$there/lists" -o Dir::State::status="$there/status" \
      -o Dir::Cache="$there" -o Dir::Cache::archives="$there/archives" -o APT::Architecture=arm64 \
      -o APT::Architectures=arm64 -o APT::Sandbox::User=root $what >>"$deps/arm/apt.log" 2>&1 ||
      die "apt-get $what failed for ARM, see $deps/arm/apt.log"
  done
  for package in "$there"/archives/*.deb; do dpkg -x "$package" "$deps/arm/root"; done
  rm -rf "$there"
  touch "$deps/arm/done"
}

# cross PLATFORM
cross() {
  fetch ziglang
  fetch wgpu --platform "$1"
}

step_build() {
  missing=
  have cc || missing="$missing gcc libc6-dev"
  have cmake || missing="$missing cmake"
  have ninja || missing="$missing ninja-build"
  have python3 || missing="$missing python3"
  [ -z "$missing" ] || packages "a C compiler, CMake, Ninja and Python" $missing
  wishes
  fetch wgpu --into "$deps/wgpu"
}

# What the command uses where it is there, and does without elsewhere.
wishes() {
  wanted=
  any_of /usr/include/histedit.h /usr/local/include/histedit.h || wanted="$wanted libedit-dev"
  any_of /usr/include/jpeglib.h /usr/local/include/jpeglib.h || wanted="$wanted libjpeg-dev"
  any_of /usr/include/png.h /usr/local/include/png.h || wanted="$wanted libpng-dev"
  [ -n "$wanted" ] && [ "$(id -u)" = 0 ] && have apt-get || return 0
  packages "line editing and pictures for the command" $wanted
}

# Without it those tests are skipped.
step_terminal() {
  [ "$(id -u)" = 0 ] && have apt-get || return 0 # elsewhere their tests skip
  missing=
  for program in tmux zsh fish; do have $program || missing="$missing $program"; done
  [ -z "$missing" ] || packages "a terminal and shells for the tests" $missing
}

# A GPU shows up as a render node or an NVIDIA device; Metal needs no loader.
step_run() {
  [ "$(uname -s)" = Linux ] || return 0
  if ! ldconfig -p 2>/dev/null | grep -q 'libvulkan\.so\.1'; then
    any_of /usr/lib/*/libvulkan.so.1 /usr/lib/libvulkan.so.1 || packages "the Vulkan loader" libvulkan1
  fi
  [ -n "${VK_ICD_FILENAMES:-}${VK_DRIVER_FILES:-}" ] && return 0
  any_of /dev/dri/renderD* /dev/nvidia0 && return 0
  any_of /usr/share/vulkan/icd.d/lvp_icd*.json || packages "a software Vulkan device, since there is no GPU" mesa-vulkan-drivers
}

step_lint() {
  missing=
  have clang-19 || missing="$missing clang-19 libclang-rt-19-dev"
  have clang-format-19 || missing="$missing clang-format-19"
  [ -z "$missing" ] || packages "clang 19 and clang-format 19" $missing
}

step_swift() {
  [ "$(uname -s)" = Linux ] || die "SwiftShader is set up on Linux only"
  [ -e /usr/lib/chromium/vk_swiftshader_icd.json ] || packages "SwiftShader" chromium
}

step_executorch() {
  have c++ || packages "a C++ compiler" g++
  venv=build/executorch/venv
  [ -e "$venv/done" ] && return
  say "installing executorch and torch into $venv: some gigabytes"
  python3 -m venv "$venv" || packages "Python's venv" python3-venv
  [ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
  "$venv/bin/pip" install -q $(grep -oE '^(executorch|torch|torchao|numpy)==[0-9.]+' tools/export/requirements.txt)
  touch "$venv/done"
}

step_web() {
  missing=
  have clang-19 || missing="$missing clang-19"
  have wasm-ld-19 || missing="$missing lld-19"
  [ -e /usr/include/wasm32-wasi/stdio.h ] || missing="$missing wasi-libc"
  any_of /usr/lib/llvm-19/lib/clang/19/lib/wasi/libclang_rt.builtins-wasm32.a ||
    missing="$missing libclang-rt-19-dev-wasm32"
  have wasm-opt || missing="$missing binaryen"
  [ -z "$missing" ] || packages "clang 19 and wasm-opt for WebAssembly" $missing
}

# Node's packages come from npm, in exact versions.
step_browsers() {
  have node && have npm || packages "Node" nodejs npm
  have chromium || packages "Chromium" chromium
  have firefox-esr || have firefox || packages "Firefox" firefox-esr
  [ -e "$deps/node/done" ] && return
  mkdir -p "$deps/node"
  echo '{"private": true}' >"$deps/node/package.json"
  say "fetching webgpu, playwright-core and puppeteer-core from npm"
  (cd "$deps/node" && npm install --silent --no-audit --no-fund --ignore-scripts \
    webgpu@0.6.2 playwright-core@1.65.1 puppeteer-core@24.43.1) || die "npm could not install them"
  touch "$deps/node/done"
}

# For tests alone, which skip without them.
step_bundlers() {
  have npm || packages "Node" nodejs npm
  [ -e "$deps/bundlers/done" ] && [ -e "$deps/bundlers/node_modules/typescript" ] && return
  mkdir -p "$deps/bundlers"
  echo '{"private": true}' >"$deps/bundlers/package.json"
  say "fetching Vite, webpack and TypeScript from npm"
  (cd "$deps/bundlers" && npm install --silent --no-audit --no-fund --ignore-scripts \
    vite@8.3.8 webpack@5.112.2 typescript@5.9.3) || {
    say "npm could not install them: their tests will be skipped"
    return 0
  }
  touch "$deps/bundlers/done"
}

# NumPy is for tests alone, which skip what needs it.
step_python() {
  python3 -c 'import venv, ensurepip' 2>/dev/null || packages "Python's venv" python3-venv
  python3 -c 'import numpy' 2>/dev/null && return
  PYTHONPATH=$deps/numpy python3 -c 'import numpy' 2>/dev/null && return
  say "fetching NumPy (for tests)"
  rm -rf "$deps/numpy"
  python3 -m pip install -q --disable-pip-version-check --root-user-action=ignore --no-deps --only-binary=:all: \
    --target "$deps/numpy" 'numpy<3' || say "could not fetch NumPy from PyPI: its tests will be skipped"
}

for step in "$@"; do
  case "$step" in
    build | run | terminal | lint | swift | dawn | executorch | web | browsers | bundlers | python | windows | wine | arm) "step_$step" ;;
    linux-* | macos-*) cross "$step" ;;
    *) die "unknown step '$step'" ;;
  esac
done
