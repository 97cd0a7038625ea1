#!/usr/bin/env bash
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# Installs, upgrades and removes the Debian package and the rpm that scripts/rehearse-release.sh built, each
# in an overlay in a mount namespace of its own, so that nothing of it remains. Needs root.
set -euo pipefail
cd "$(dirname "$0")/.."
die() { printf 'test-package: %s\n' "$*" >&2; exit 1; }

# files lists what a package could leave behind. systemd-analyze itself writes to
# /run/systemd if no systemd runs, and systemd-sysusers writes the last ones.
files() {
  find /etc /run /usr /var -xdev \( -path /run/systemd -o -path /var/lib/dpkg -o -path /var/lib/rpm -o -path /var/log \) -prune -o -print |
    grep -vE '^/etc/(\.pwd\.lock|(passwd|group|shadow|gshadow)-)$' | sort
}

# verify fails on what systemd only warns about, such as settings that it doesn't know.
verify() {
  echo "verify the units: $1"
  local said
  said=$(systemd-analyze verify --man=no "${@:2}" 2>&1) && ! grep -F otelcol-nixl <<<"$said" || die "$said"
}

if [[ ${1-} == inside ]]; then
  package=$2 docs=/usr/share/doc/otelcol-nixl units=/etc/systemd/system
  install=(dpkg --install "$package")
  [[ $package == *.deb ]] || install=(rpm --upgrade --force --nodeps "$package") # rpm doesn't know what dpkg has installed
  export DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin
  files >/tmp/before

  echo "install ${package##*/}"
  "${install[@]}"
  id nixl
  id otelcol-nixl
  [[ $(stat -c '%a %U %G' /run/nixl) == "1770 root nixl" ]] || die "/run/nixl has the wrong mode or owner"
  (
    set -a
    # shellcheck disable=SC1091
    . /etc/otelcol-nixl/env
    setpriv --reuid=nixl --regid=nixl --clear-groups otelcol-nixl validate --config=/etc/otelcol-nixl/config.yaml
    setpriv --reuid=nixl --regid=nixl --clear-groups nixlring --version
  )

  verify "as installed" /usr/lib/systemd/system/otelcol-nixl.service
  mkdir -p "$units"/{otelcol-nixl,otelcol-nixl-agent}.service.d
  printf '[Service]\nExecStart=/bin/true\n' >"$units/otelcol-nixl-agent.service"
  cp "$docs/agent.conf" "$units/otelcol-nixl-agent.service.d"
  verify agent.conf "$units/otelcol-nixl-agent.service"
  for drop_in in several-users.conf processes.conf; do
    cp "$docs/$drop_in" "$units/otelcol-nixl.service.d"
    verify "$drop_in" /usr/lib/systemd/system/otelcol-nixl.service
    rm "$units/otelcol-nixl.service.d/$drop_in"
  done
  rm -r "$units"/otelcol-nixl*

  echo "upgrade and remove"
  echo "KEPT=1" >>/etc/otelcol-nixl/env
  "${install[@]}"
  grep -q KEPT /etc/otelcol-nixl/env || die "an upgrade overwrote /etc/otelcol-nixl/env"
  mkdir /var/lib/otelcol-nixl # systemd would create it
  if [[ $package == *.deb ]]; then
    dpkg --remove otelcol-nixl
    grep -q KEPT /etc/otelcol-nixl/env || die "the configuration is gone; only a purge may remove it"
    dpkg --purge otelcol-nixl
    : >/tmp/stays
  else # rpm has no purge
    rpm --erase otelcol-nixl
    grep -q KEPT /etc/otelcol-nixl/env.rpmsave || die "the changed configuration is gone"
    printf '%s\n' /etc/otelcol-nixl{,/env.rpmsave} /run/nixl /var/lib/otelcol-nixl >/tmp/stays
  fi
  ! command -v otelcol-nixl || die "the Collector is still there"
  files | comm -13 /tmp/before - | comm -23 - /tmp/stays >/tmp/left
  [[ ! -s /tmp/left ]] || die "left behind: $(cat /tmp/left)"
  exit
fi

for program in unshare setpriv systemd-analyze systemd-sysusers systemd-tmpfiles; do
  [[ $EUID == 0 ]] && command -v "$program" >/dev/null || { echo "no root or no $program: the packages aren't installed"; exit 0; }
done
for package in dpkg:$(echo bin/release/*_"$(go env GOARCH)".deb) rpm:$(echo bin/release/*"$(uname -m)".rpm); do
  command -v "${package%%:*}" >/dev/null || { echo "no ${package%%:*}: ${package##*/} isn't installed"; continue; }
  # shellcheck disable=SC2016
  package=${package#*:} unshare --mount bash -euc '
    mount -t tmpfs tmpfs /mnt && mkdir /mnt/{upper,work,root}
    mount -t overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work overlay /mnt/root ||
      { echo "no permission to mount: the packages are not installed"; exit 0; }
    mount --rbind /dev /mnt/root/dev
    mount -t proc proc /mnt/root/proc
    mkdir -p /mnt/root/tmp
    cp "$package" scripts/test-package.sh /mnt/root/tmp
    chroot /mnt/root bash /tmp/test-package.sh inside "/tmp/${package##*/}"'
done
