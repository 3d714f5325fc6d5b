#!/bin/sh
# make demo: an imaginary site's traffic, an hour of it at once and then live, counted into a store of its own
# that is removed at the end.
#
#   bench/demo.sh BUILD-DIRECTORY [HOST:PORT]
set -eu

build=$1
listen=${2:-127.0.0.1:8080}
rate=200 # lines a second

dir=$(mktemp -d "${TMPDIR:-/tmp}/tallyd-demo.XXXXXX")
mkfifo "$dir/lines"
: >"$dir/log"

traffic=
tallyd=
finish() {
    trap '' INT TERM HUP
    # Ctrl-C has reached these two already; TERM only this script.
    for pid in $traffic $tallyd; do
        kill -TERM "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$dir"
}
trap 'finish; exit 0' INT TERM HUP

"$build/traffic" --live --rate "$rate" --backfill 3600 >"$dir/lines" &
traffic=$!
"$build/tallyd" run --store "sqlite:$dir/demo.db" --listen "$listen" <"$dir/lines" 2>"$dir/log" &
tallyd=$!

# It listens, or it has ended and said why.
until grep -q 'event=started' "$dir/log"; do
    kill -0 "$tallyd" 2>/dev/null || break
    sleep 0.05
done
if kill -0 "$tallyd" 2>/dev/null; then
    address=$(sed -n 's/.*event=started .*listen=\([^ ]*\).*/\1/p' "$dir/log")
    echo "Look at http://$address/ - $rate made-up requests a second, counted as they come; the last hour is there already."
    echo "Ask it: $build/tallyd query pages --store sqlite:$dir/demo.db --top 5   Ctrl-C ends it and removes its store."
fi

status=0
wait "$tallyd" || status=$?
tallyd=
cat "$dir/log" >&2
if [ "$status" -eq 69 ]; then
    echo "make demo LISTEN=127.0.0.1:9090 takes another port." >&2
fi
finish
exit "$status"
