#!/bin/bash
# systemd takes the units as they stand, with a program that exists, and finds them well shut in.
set -euo pipefail
exposure_max=1.0
exposure_open_max=1.2 # with the drop-in network.conf
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
make --silent install DESTDIR="$dir" PREFIX=/usr >/dev/null
units=$dir/usr/lib/systemd/system
mkdir "$units/tallyd.service.d" "$units/tallyd@.service.d"
cp "$dir/usr/share/doc/tallyd/examples/"*.conf "$units/tallyd.service.d"
sed -i -E 's%^(ExecStart|ExecReload)=/usr/bin/tallyd%\1=/bin/true%' "$units"/tallyd*.service

status=0
complain() {
    echo "$1"
    status=1
}
for unit in tallyd.service tallyd@example.service; do
    complaints=$(SYSTEMD_UNIT_PATH="$units:" systemd-analyze verify --man=no "$unit" 2>&1 | grep -F tallyd || true)
    [ -z "$complaints" ] || complain "$complaints"
done
# systemd takes a state directory that has another unit's in it for that unit's: then one of them never starts.
! grep -h '^StateDirectory=.*/' "$units"/tallyd*.service || complain "a state directory lies within another unit's"
cp "$units/tallyd.service" "$units/default.service" # without the drop-ins beside it
# A drop-in comes behind all of the unit.
{ sed '/^\[Install\]/,$d' "$units/tallyd.service" && cat "$units/tallyd.service.d/network.conf"; } >"$units/open.service"
for pair in "default.service $exposure_max" "tallyd@.service $exposure_max" "open.service $exposure_open_max"; do
    read -r unit most <<<"$pair"
    exposure=$(systemd-analyze security --offline=true --no-pager "$units/$unit" | grep -o 'Overall.*: [0-9.]*' |
        grep -o '[0-9.]*$')
    awk "BEGIN { exit !(${exposure:-10} <= $most) }" ||
        complain "$unit: exposure ${exposure:-unknown}, expected at most $most"
done
[ $status -ne 0 ] || echo "the units are good; exposure at most $exposure_max, $exposure_open_max with network.conf"
exit $status
