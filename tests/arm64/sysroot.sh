#!/bin/bash
# Makes a folder with Debian's arm64 libraries, for a cross compiler and qemu: `sysroot.sh FOLDER`.
#
# apt resolves and fetches the packages by a state of its own, so this computer's packages stay as they are. Needs no root. The
# libraries are those that debian/control names, and those of the unit tests. FOLDER/var/lib/dpkg lists the packages and their files, by
# the paths at which they are here, as dpkg-shlibdeps needs it.
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
known=$root/var/lib/dpkg
mkdir -p "$known/info" "$known/updates"
for package in "$state"/cache/archives/*.deb; do
    dpkg-deb -x "$package" "$root"
    dpkg-deb -e "$package" "$state/control"
    name=$(sed -n 's/^Package: //p' "$state/control/control")
    grep -q '^Multi-Arch: same' "$state/control/control" && name=$name:arm64
    for kind in symbols shlibs; do
        [ ! -f "$state/control/$kind" ] || cp "$state/control/$kind" "$known/info/$name.$kind"
    done
    dpkg-deb --fsys-tarfile "$package" | tar -t | sed "s|^\.|$root|; s|/\$||" >"$known/info/$name.list"
    sed 's/^Package: .*/&\nStatus: install ok installed/' "$state/control/control" >>"$known/status"
    echo >>"$known/status"
    rm -rf "$state/control"
done
echo 1 >"$known/info/format"
# Links that are absolute lead out of the folder.
find "$root" -type l -lname '/*' -printf '%p %l\n' | while read -r link target; do
    ln -sfr "$root$target" "$link"
done
touch "$root" # dpkg-deb gave it the time of a package
