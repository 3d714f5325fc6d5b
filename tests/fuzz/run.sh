#!/bin/bash
# Fuzzes one target for some seconds: `run.sh TARGET SECONDS`. New inputs are kept in build/fuzz/corpus; one that
# crashes goes to tests/fuzz/corpus, where it fails every `make check` until it is mended, and guards that it stays so.
set -euo pipefail
found=build/fuzz/corpus/$1 kept=tests/fuzz/corpus/$1
mkdir -p "$found" "$kept"
exec "build/asan/tests/fuzz_$1" -max_total_time="$2" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$kept/" "$found" "$kept"
