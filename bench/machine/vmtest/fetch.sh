#!/bin/sh
# fetch.sh - fetch what guests boot with into the user's cache, unless it is there,
# and print where: the emulator with its firmware, and a kernel for arm64.
#
# apt gets lists, cache and state of its own, so this needs no root and installs
# nothing. It reads this machine's sources, which have to be those of Debian or a
# descendant that has the packages too.
set -eu

emulator="qemu-system-arm qemu-efi-aarch64"
kernel=linux-image-cloud-arm64

# Another release has other libraries.
key=$({ cat /etc/os-release; echo "$emulator $kernel"; } | sha256sum | cut -c 1-12)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/armrepro-vmtest
kit=$cache/$key
if [ -d "$kit" ]; then
    echo "$kit"
    exit
fi
echo "fetching $emulator and $kernel into $kit" >&2
mkdir -p "$cache"
# The kit is put together beside its place and then moved: it is whole or not there.
work=$(mktemp -d "$cache/fetch-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM
mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" "$work/kernel" "$work/kit"
cp /var/lib/dpkg/status "$work/status"

apt() {
    program=$1
    shift
    # Another user of apt's own could not write to these folders.
    timeout 300 "$program" -q -oDir::State="$work/state" -oDir::State::status="$work/status" -oDir::Cache="$work/cache" \
        -oAPT::Architectures="$(dpkg --print-architecture),arm64" -oAPT::Sandbox::User=root "$@"
}

apt apt-get update >&2
# shellcheck disable=SC2086 # several packages
apt apt-get install --download-only --yes --reinstall --no-install-recommends $emulator >&2
# The package stands for the newest kernel: it depends on that, and the guest has
# no use for what that depends on.
newest=$(apt apt-cache depends --important "$kernel:arm64" | sed -n 's/^ *Depends: \([^<]*\)$/\1/p' | head -n 1)
(cd "$work/kernel" && apt apt-get download "$newest" >&2)
for package in "$work"/cache/archives/*.deb; do
    dpkg-deb --extract "$package" "$work/kit/emulator"
done
dpkg-deb --extract "$work"/kernel/*.deb "$work/kit/guest"
# Flash images, documents and modules are no use.
rm -rf "$work/kit/emulator/usr/share/AAVMF" "$work/kit/emulator/usr/share/doc" "$work/kit/guest/lib" "$work/kit/guest/usr"
# If another process was faster, its kit is as good.
[ -d "$kit" ] || mv "$work/kit" "$kit"
echo "$kit"
