#!/bin/sh
# Runs fuzz targets on their seeds: tools/fuzz.sh [SECONDS for all together, default 60] [TARGET]…
# Where none is named and there would be less than 15 seconds for each, it is as many as have them,
# others every day.
# New inputs go to build/fuzz/corpus, findings to build/fuzz/found-*. Fails on the first finding.
# Targets that run on a device take a software one, or what VK_ICD_FILENAMES names.
set -eu
# Five times as many executions: most of the time went into fresh pages for the quarantine.
export ASAN_OPTIONS="${ASAN_OPTIONS:-quarantine_size_mb=4:detect_stack_use_after_return=0}"
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -eq 0 ] || shift
if [ $# -eq 0 ]; then
  set -- $(ls fuzz/fuzz_*.c | sed 's|fuzz/fuzz_||; s|\.c$||')
  n=$((seconds / 15 > 0 ? seconds / 15 : 1))
  if [ $n -lt $# ]; then
    past=$(($(date -u +%s) / 86400 * n % $#))
    for target in "$@"; do # the day's first to the end, then those before it
      if [ $past -gt 0 ]; then past=$((past - 1)) before="${before-} $target"; else after="${after-} $target"; fi
    done
    set -- $(echo ${after-} ${before-} | cut -d ' ' -f "1-$n")
  fi
fi
# Every operator and the small programs, as PyTorch exported them for the tests: seeds of the targets
# that take programs.
exported() {
  mkdir -p build/fuzz/exported
  find tests/data/ops tests/data/programs -name '*.pte' -size -13k | while read -r file; do
    echo "$file" "build/fuzz/exported/$(dirname "${file#tests/data/}" | tr / -).pte"
  done | xargs -n 2 cp
}
each=$((seconds / $# > 0 ? seconds / $# : 1))
for target in "$@"; do
  name=fuzz_$target
  seeds=fuzz/corpus/$target
  case $target in plan | run) exported && seeds="$seeds build/fuzz/exported" ;; esac
  quiet=1
  [ "$target" != npy ] || quiet=3 # the command says what is wrong with each file
  mkdir -p "build/fuzz/corpus/$target"
  "build/fuzz/$name" -max_total_time="$each" -timeout=10 -print_final_stats=1 -close_fd_mask=$quiet \
    -artifact_prefix="build/fuzz/found-$target-" "build/fuzz/corpus/$target" \
    $seeds 2>&1 | tee "build/fuzz/$name.log" |
    grep -E '^(#[0-9]+ *(INITED|DONE)|SUMMARY|stat::number)' || true
  if grep -qE '^(SUMMARY|ERROR)' "build/fuzz/$name.log"; then exit 1; fi
done
