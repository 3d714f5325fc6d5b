#!/bin/bash
# systemd takes the unit as it stands, with a program that exists.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
sed 's|@PREFIX@/bin/tallyd|/bin/true|; s|@PREFIX@|/usr|g' systemd/tallyd.service.in >"$dir/tallyd.service"
complaints=$(systemd-analyze verify --man=no "$dir/tallyd.service" 2>&1 | grep -F tallyd.service || true)
echo "${complaints:-systemd/tallyd.service.in is good}"
[ -z "$complaints" ]
