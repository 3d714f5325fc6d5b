#!/bin/sh
# make demo: an imaginary site's traffic, an hour of it at once and then live, through a Kafka broker (librdkafka's
# mock cluster, in the producer's process) into a store of its own, which is removed at the end.
#
#   bench/demo.sh BUILD-DIRECTORY [HOST:PORT]
set -eu

build=$1
listen=${2:-127.0.0.1:8080}
rate=100       # lines a second
partitions=16  # of the mock, which keeps 5 MiB of each: together the hour before

dir=$(mktemp -d "${TMPDIR:-/tmp}/tallyd-demo.XXXXXX")
mkfifo "$dir/lines"
: >"$dir/log"

traffic=
broker=
tallyd=
finish() {
    trap '' INT TERM HUP
    # Ctrl-C has reached these already; TERM only this script.
    for pid in $traffic $broker $tallyd; do
        kill -TERM "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$dir"
}
trap 'finish; exit 0' INT TERM HUP

"$build/traffic" --live --rate "$rate" --backfill 3600 >"$dir/lines" &
traffic=$!
"$build/kafka_mock" access "$partitions" "$dir/address" <"$dir/lines" &
broker=$!
until [ -s "$dir/address" ]; do
    kill -0 "$broker" || exit 70
    sleep 0.05
done
cat >"$dir/tallyd.yaml" <<END
kafka: {brokers: "$(cat "$dir/address")"}
sources: {access: {type: kafka, decode: [combined]}}
reports: {site: {}, pages: {by: [path]}, status: {by: [status_class]}}
store: {url: "sqlite:$dir/demo.db"}
END
"$build/tallyd" run -c "$dir/tallyd.yaml" --listen "$listen" 2>"$dir/log" &
tallyd=$!

# It listens, or it has ended and said why.
until grep -q 'event=started' "$dir/log"; do
    kill -0 "$tallyd" 2>/dev/null || break
    sleep 0.05
done
if kill -0 "$tallyd" 2>/dev/null; then
    address=$(sed -n 's/.*event=started .*listen=\([^ ]*\).*/\1/p' "$dir/log")
    echo "Look at http://$address/ - $rate made-up requests a second, from a Kafka topic; the last hour is there already."
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
