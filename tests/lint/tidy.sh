#!/bin/bash
# clang-tidy with the checks of .clang-tidy on every C file, one per processor.
set -euo pipefail
make --silent compile_commands.json
python3 -c 'import json; print("\n".join(c["file"] for c in json.load(open("compile_commands.json"))))' |
    xargs -P "$(nproc)" -n 1 clang-tidy-14 -p . --quiet 2>&1 | sed '/^[0-9]* warnings\? generated\.$/d'
