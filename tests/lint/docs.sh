#!/bin/bash
# The pages that `make docs` writes are what it would write now; and the manual page and the completion know every
# option that a command's --help names. Every relative link of a page leads to a file that exists.
set -uo pipefail
status=0
build/tallyd check --document | diff -u docs/CONFIG.md - || status=1
python3 docs/man5.py <docs/CONFIG.md | diff -u docs/tallyd.yaml.5 - || status=1

for command in $(build/tallyd --help | sed -n 's/^  \([a-z]*\) .*/\1/p' | grep -v '^tallyd$'); do
    options=$(build/tallyd "$command" --help | grep -o -- '--[a-z][a-z-]*' | sort -u)
    manual=$(sed -n "/^\.Ss $command/,/^\.S[sh] [^$]*$/p" docs/tallyd.8)
    completed=$(grep -E "^ +$command\) options=" docs/completions/tallyd)
    grep -q " -W \".* $command\|-W \"$command" docs/completions/tallyd ||
        { echo "docs/completions/tallyd: lacks $command"; status=1; }
    for option in $options; do
        [[ $manual == *"Fl Fl ${option#--}"* ]] || { echo "docs/tallyd.8: $command lacks $option"; status=1; }
        [[ $completed == *"$option"* || $option == --config ]] ||
            { echo "docs/completions/tallyd: $command lacks $option"; status=1; }
    done
done
tests/lint/links.py ./*.md docs/*.md bench/*.md || status=1
[ $status = 0 ] && echo "the pages are up to date and name every option"
exit $status
