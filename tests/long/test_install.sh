#!/bin/bash
# What `make install` puts into DESTDIR works there, and `make uninstall` leaves nothing.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

make --silent install DESTDIR="$dir" PREFIX=/opt/tallyd
root=$dir/opt/tallyd
"$root/bin/tallyd" --version
"$root/bin/tallyd" check -c "$root/share/doc/tallyd/examples/tallyd.yaml"
grep -q '^ExecStart=/opt/tallyd/bin/tallyd run -c /etc/tallyd.yaml$' "$root/lib/systemd/system/tallyd.service"
grep -q '^ExecStart=/opt/tallyd/bin/tallyd run -c /etc/tallyd/%i.yaml$' "$root/lib/systemd/system/tallyd@.service"
! grep '@[A-Z]*@' "$root"/lib/systemd/system/* || exit 1
grep -q '^LoadCredential=' "$root/share/doc/tallyd/examples/credentials.conf"
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
left=$(find "$dir" -type f)
[ -z "$left" ] || { echo "uninstall left: $left"; exit 1; }
