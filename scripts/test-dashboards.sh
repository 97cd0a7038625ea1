#!/usr/bin/env bash
# Builds the backends, and has the tests of the dashboards use them.
#
# Prometheus takes minutes to build on a new machine, a browser takes Debian's
# packages: what can't be had here is skipped, with a message.
set -euo pipefail
cd "$(dirname "$0")/.."

[[ -e bin/prometheus ]] || echo "building Prometheus (minutes on a new machine)" >&2
for program in prometheus promtool; do
  CGO_ENABLED=0 GOWORK=off go build -C test/backends -trimpath -buildvcs=false -tags=remove_all_sd -ldflags='-s -w' \
    -o "$PWD/bin/$program" "github.com/prometheus/prometheus/cmd/$program"
done

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [[ -z $browser && $EUID == 0 ]] && command -v apt-get >/dev/null; then
  echo "installing Chromium" >&2
  { apt-get -qq update && apt-get -qq install --yes --no-install-recommends chromium fonts-dejavu-core; } >&2 || true
  browser=$(command -v chromium || true)
fi
[[ -n $browser ]] || echo "no Chromium, and no right to install it: the page isn't looked at" >&2

export OTELCOL_NIXL=$PWD/dist/otelcol-nixl NIXLRING=$PWD/bin/nixlring VICTORIA_METRICS=$PWD/bin/victoria-metrics
export PROMETHEUS=$PWD/bin/prometheus PROMTOOL=$PWD/bin/promtool CHROMIUM=$browser
go -C test/backends test -count=1 ./... # the cache ignores files outside a module
exec go -C test test -count=1 ./dashboards "$@"
