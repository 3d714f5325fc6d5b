#!/bin/bash
# docs/CONFIG.md is what the program's own table says; `make docs` writes it anew.
set -uo pipefail
build/tallyd check --document | diff -u docs/CONFIG.md - && echo "docs/CONFIG.md is up to date"
