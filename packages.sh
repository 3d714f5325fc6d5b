#!/bin/bash
# Installs the Debian packages of the groups given, and only those that are missing: `./packages.sh build check`.
#
#   build   what `make` and `make demo` need
#   check   what `make check` needs besides
#   package what `make deb` needs besides `build`
#   arm64   what `make arm64` needs besides `build`
#   image   what `make image` needs besides `build` and `package`
#   all     what `make check-all`, `make bench` and the other targets need besides
set -euo pipefail

declare -A groups=(
    [build]="gcc libc6-dev make pkg-config libyaml-dev libsqlite3-dev libarchive-dev libmicrohttpd-dev
             libxxhash-dev zlib1g-dev libzstd-dev libmongoc-dev libjs-dygraphs librdkafka-dev libsystemd-dev
             libcurl4-openssl-dev libglib2.0-dev libpcre2-dev libsnappy-dev libmaxminddb-dev libjansson-dev tzdata"
    [check]="libcmocka-dev python3 python3-venv uap-core gzip zstd bzip2 xz-utils kcat maven
             default-jre-headless prometheus openssl"
    [package]="build-essential debhelper dpkg-dev"
    [arm64]="gcc-aarch64-linux-gnu qemu-user-static lintian"
    [image]="buildah debootstrap"
    [all]="clang-14 libclang-rt-14-dev llvm-14 clang-format-14 clang-tidy-14 shellcheck mandoc man-db systemd
           util-linux spin valgrind gcovr chromium goaccess prometheus-alertmanager mawk cmake g++ logrotate nginx-light apache2-bin
           systemd-container build-essential debhelper dpkg-dev lintian
           gcc-aarch64-linux-gnu qemu-user-static"
)

# Is there a Java that runs Kafka's broker, from wherever?
java_serves() {
    local version
    version=$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p')
    [ "${version:-0}" -ge 17 ]
}

# What a package is there for may have come another way.
present() {
    case $1 in
    default-jre-headless) java_serves ;;
    maven) command -v mvn >/dev/null ;;
    prometheus) command -v promtool >/dev/null ;; # of which its service is never asked
    *) [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ] ;;
    esac
}

packages=()
for group in "$@"; do
    if [ -z "${groups[$group]:-}" ]; then
        echo "packages.sh: found \"$group\", expected build, check, package, arm64, image or all" >&2
        exit 64
    fi
    read -r -d '' -a names <<<"${groups[$group]}" || true
    packages+=("${names[@]}")
done

if ! command -v dpkg-query >/dev/null; then
    echo "This is not Debian, so nothing is installed. What is needed is called there: ${packages[*]}" >&2
    exit 0
fi

missing=()
for package in "${packages[@]}"; do
    present "$package" || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=(env DEBIAN_FRONTEND=noninteractive)
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "Debian packages are missing, and there is neither root nor sudo to install them. As root:" >&2
        echo "    apt-get install --no-install-recommends ${missing[*]}" >&2
        exit 69
    fi
    as_root=(sudo "${as_root[@]}")
fi
apt=("${as_root[@]}" apt-get -q -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300)
echo "Installing missing Debian packages (${as_root[0]/env/as root}): ${missing[*]}"
"${apt[@]}" update
"${apt[@]}" install -y --no-install-recommends "${missing[@]}"
