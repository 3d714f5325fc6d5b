#!/bin/bash
# Makes a folder with Debian's arm64 libraries, for a cross compiler and qemu: `sysroot.sh FOLDER`.
#
# apt resolves and fetches the packages by a state of its own, so this computer's packages stay as they are. Needs no root. The
# libraries are those that debian/control names, and those of the unit tests.
set -euo pipefail
root=$(realpath -m "$1")
state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT

mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
: >"$state/status"
cat >"$state/apt.conf" <<CONF
#clear APT::Architectures;
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Install-Recommends "false";
APT::Sandbox::User "";
Acquire::Retries "3";
Dir::State::Lists "$state/lists";
Dir::State::Status "$state/status";
Dir::Cache "$state/cache";
CONF
export APT_CONFIG=$state/apt.conf
mapfile -t libraries < <(sed -n 's/^ \([a-z0-9.+-]*-dev\),$/\1/p' debian/control)
apt-get -q update
apt-get -q -y --download-only install libc6-dev libcmocka-dev libjansson-dev "${libraries[@]}"

rm -rf "$root"
mkdir -p "$root"
for package in "$state"/cache/archives/*.deb; do
    dpkg-deb -x "$package" "$root"
done
# Links that are absolute lead out of the folder.
find "$root" -type l -lname '/*' -printf '%p %l\n' | while read -r link target; do
    ln -sfr "$root$target" "$link"
done
touch "$root" # dpkg-deb gave it the time of a package
