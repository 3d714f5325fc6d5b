#!/bin/bash
# What `make install` puts into DESTDIR works there, and `make uninstall` leaves nothing.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

make --silent install DESTDIR="$dir" PREFIX=/opt/tallyd
root=$dir/opt/tallyd
"$root/bin/tallyd" --version
for example in tallyd kafka monitoring prometheus; do
    "$root/bin/tallyd" check -c "$root/share/doc/tallyd/examples/$example.yaml"
done
grep -q '^ExecStart=/opt/tallyd/bin/tallyd run -c /etc/tallyd.yaml$' "$root/lib/systemd/system/tallyd.service"
grep -q '^ExecStart=/opt/tallyd/bin/tallyd run -c /etc/tallyd/%i.yaml$' "$root/lib/systemd/system/tallyd@.service"
! grep '@[A-Z]*@' "$root"/lib/systemd/system/* || exit 1
grep -q '^LoadCredential=' "$root/share/doc/tallyd/examples/credentials.conf"
doc=$root/share/doc/tallyd
for file in openapi.yaml operating.md CONFIG.md examples/kafka.yaml examples/monitoring.yaml grafana/dashboards/tallyd.json \
    grafana/provisioning/dashboards/tallyd.yaml grafana/provisioning/datasources/tallyd.yaml; do
    cmp "docs/$file" "$doc/$file"
done
# The files to which the installed documents point are installed with them.
tests/lint/links.py "$doc"/*.md
man -l "$root/share/man/man8/tallyd.8" >/dev/null
man -l "$root/share/man/man5/tallyd.yaml.5" >/dev/null

# Completion: reports come from the program installed.
words=$(PATH=$root/bin:$PATH bash -c "
    compopt() { :; }
    source '$root/share/bash-completion/completions/tallyd'
    COMP_WORDS=(tallyd query '') COMP_CWORD=2
    _tallyd
    echo \${COMPREPLY[*]}")
[ "$words" = "site pages http://" ] ||
    { echo "completion of 'tallyd query' is '$words', expected 'site pages http://'"; exit 1; }

make --silent uninstall DESTDIR="$dir" PREFIX=/opt/tallyd
make --silent install DESTDIR="$dir" PREFIX=/opt/tallyd docdir=/opt/doc
cmp docs/openapi.yaml "$dir/opt/doc/openapi.yaml"
make --silent uninstall DESTDIR="$dir" PREFIX=/opt/tallyd docdir=/opt/doc
left=$(find "$dir" -type f)
[ -z "$left" ] || { echo "uninstall left: $left"; exit 1; }
