#!/bin/bash
# clang-tidy with the checks of .clang-tidy on every C file, one per processor: `tidy.sh [NODES]`. The analyzer looks at NODES states of a
# function at most, instead of the number in .clang-tidy.
set -euo pipefail
make --silent compile_commands.json
config=$(mktemp)
trap 'rm -f "$config"' EXIT
sed "${1:+s/max-nodes=[0-9]*/max-nodes=$1/}" .clang-tidy >"$config"
python3 -c 'import json; print("\n".join(c["file"] for c in json.load(open("compile_commands.json"))))' |
    xargs -P "$(nproc)" -n 1 clang-tidy-14 -p . --quiet --config-file="$config" 2>&1 | sed '/^[0-9]* warnings\? generated\.$/d'
