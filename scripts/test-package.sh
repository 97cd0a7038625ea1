#!/usr/bin/env bash
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# Installs, upgrades and removes the Debian package and the rpm that `make snapshot`
# built, each in a copy of this system that is gone afterwards. Needs root, and dpkg
# and rpm for their package.
set -euo pipefail
cd "$(dirname "$0")/.."
die() { printf 'test-package: %s\n' "$*" >&2; exit 1; }

# files lists what a package could leave behind. systemd-analyze itself writes to
# /run/systemd if no systemd runs, and systemd-sysusers writes the last ones.
files() {
  find /etc /run /usr /var -xdev \( -path /run/systemd -o -path /var/lib/dpkg -o -path /var/lib/rpm -o -path /var/log \) -prune -o -print |
    grep -vE '^/etc/(\.pwd\.lock|(passwd|group|shadow|gshadow)-)$' | sort
}

# install installs a package, or upgrades to it.
install() {
  case $1 in
    *.deb) dpkg --install "$1" ;;
    *.rpm) rpm --upgrade --force --nodeps "$1" ;; # --nodeps: rpm doesn't know what dpkg has installed
  esac
}

inside() {
  local package=$1
  export DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin
  files >/tmp/before

  echo "install ${package##*/}"
  install "$package"
  id nixl
  id otelcol-nixl
  [[ $(stat -c '%a %U %G' /run/nixl) == "1770 root nixl" ]] || die "/run/nixl has the wrong mode or owner"
  systemd-analyze verify --man=no /usr/lib/systemd/system/otelcol-nixl.service
  (
    set -a
    # shellcheck disable=SC1091
    . /etc/otelcol-nixl/env
    setpriv --reuid=nixl --regid=nixl --clear-groups otelcol-nixl validate --config=/etc/otelcol-nixl/config.yaml
    setpriv --reuid=nixl --regid=nixl --clear-groups nixlring --version
  )

  echo "upgrade"
  echo "KEPT=1" >>/etc/otelcol-nixl/env
  install "$package"
  grep -q KEPT /etc/otelcol-nixl/env || die "an upgrade overwrote /etc/otelcol-nixl/env"

  echo "remove"
  mkdir /var/lib/otelcol-nixl # systemd would create it
  case $package in
    *.deb)
      dpkg --remove otelcol-nixl
      grep -q KEPT /etc/otelcol-nixl/env || die "the configuration is gone; only a purge may remove it"
      echo "purge"
      dpkg --purge otelcol-nixl
      : >/tmp/stays
      ;;
    *.rpm) # has no purge
      rpm --erase otelcol-nixl
      grep -q KEPT /etc/otelcol-nixl/env.rpmsave || die "the changed configuration is gone"
      printf '%s\n' /etc/otelcol-nixl{,/env.rpmsave} /run/nixl /var/lib/otelcol-nixl >/tmp/stays
      ;;
  esac
  ! command -v otelcol-nixl || die "the Collector is still there"
  files | comm -13 /tmp/before - | comm -23 - /tmp/stays >/tmp/left
  [[ ! -s /tmp/left ]] || die "left behind: $(cat /tmp/left)"
}

if [[ ${1-} == inside ]]; then
  inside "$2"
  exit
fi

for program in unshare setpriv systemd-analyze systemd-sysusers systemd-tmpfiles; do
  [[ $EUID == 0 ]] && command -v "$program" >/dev/null ||
    { echo "no root or no $program: the packages aren't installed"; exit 0; }
done
# shellcheck disable=SC2016
unshare --mount bash -euc '
  mount -t tmpfs tmpfs /mnt && mkdir /mnt/{upper,work,root}
  mount -t overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work overlay /mnt/root' 2>/dev/null ||
  { echo "no permission to mount: the packages aren't installed"; exit 0; }

# in_copy tests a package in an overlay in a mount namespace of its own, so nothing of it
# remains.
work=$(mktemp -d)
trap 'rmdir "$work"' EXIT
in_copy() {
  package=$(realpath "$1")
  export work package
  # shellcheck disable=SC2016
  unshare --mount bash -euc '
    mount -t tmpfs tmpfs "$work"
    mkdir "$work"/{upper,work,root}
    mount -t overlay -o "lowerdir=/,upperdir=$work/upper,workdir=$work/work" overlay "$work/root"
    mount --rbind /dev "$work/root/dev"
    mount -t proc proc "$work/root/proc"
    mkdir -p "$work/root/tmp"
    cp "$package" scripts/test-package.sh "$work/root/tmp"
    chroot "$work/root" bash /tmp/test-package.sh inside "/tmp/${package##*/}"'
}

if command -v dpkg >/dev/null; then
  in_copy bin/release/*_"$(go env GOARCH)".deb
else
  echo "no dpkg: the Debian package isn't installed"
fi
if command -v rpm >/dev/null; then
  in_copy bin/release/*"$(uname -m)".rpm
else
  echo "no rpm: the rpm isn't installed"
fi
