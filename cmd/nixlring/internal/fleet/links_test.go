// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fleet

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// sysfs creates a /sys as process 1 sees it, and returns the /proc. As in a real one, classes have links to devices.
func sysfs(t *testing.T, contents map[string]string) (proc string) {
	t.Helper()
	proc = t.TempDir()
	sys := filepath.Join(proc, "1", "root", "sys")
	for path, text := range contents {
		path = filepath.Join(sys, "devices", path)
		must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.OK(t, os.WriteFile(path, []byte(text+"\n"), 0o644))
	}
	for _, class := range []string{"infiniband", "net"} {
		must.OK(t, os.MkdirAll(filepath.Join(sys, "class", class), 0o755))
		devices, _ := filepath.Glob(filepath.Join(sys, "devices", class, "*"))
		for _, d := range devices {
			must.OK(t, os.Symlink(filepath.Join("..", "..", "devices", class, filepath.Base(d)), filepath.Join(sys, "class", class, filepath.Base(d))))
		}
	}
	return proc
}

// usualLinks are the files of a port, of an interface, and of what doesn't count.
var usualLinks = map[string]string{
	"infiniband/mlx5_0/ports/1/state": "4: ACTIVE", "infiniband/mlx5_0/ports/1/counters/port_xmit_data": "100", "infiniband/mlx5_0/ports/1/counters/port_rcv_data": "7",
	"infiniband/mlx5_1/ports/1/state": "1: DOWN",
	"net/eth0/device/vendor":          "0x15b3", "net/eth0/statistics/tx_bytes": "12", "net/eth0/statistics/rx_bytes": "34",
	"net/br0/statistics/tx_bytes": "12", "net/br0/statistics/rx_bytes": "34", // its bytes pass eth0, too
}

func TestLinksAreThoseOfTheHost(t *testing.T) {
	want := []diagnose.Link{{Name: "mlx5_0/1", RDMA: true, Bytes: [2]uint64{400, 28}}, {Name: "eth0", Bytes: [2]uint64{12, 34}}}
	if diff := cmp.Diff(want, links(sysfs(t, usualLinks))); diff != "" {
		t.Error(diff)
	}
	for name, change := range map[string]map[string]string{
		"a full counter of 32 bits":       {"infiniband/mlx5_0/ports/1/counters/port_xmit_data": "4294967295"},
		"a counter that isn't supported":  {"infiniband/mlx5_0/ports/1/counters/port_rcv_data": "N/A (no PMA)"},
		"an active port without counters": {"infiniband/mlx5_1/ports/1/state": "4: ACTIVE"},
		"no active port":                  {"infiniband/mlx5_0/ports/1/state": "1: DOWN"},
		"an interface without counters":   {"net/eth0/statistics/tx_bytes": ""},
	} {
		contents := maps.Clone(usualLinks)
		maps.Copy(contents, change)
		if got := links(sysfs(t, contents)); got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := links(t.TempDir()); got != nil {
		t.Errorf("without /sys: %v", got)
	}
}

func TestFramesHaveTheLinksOfTheHost(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Proc = sysfs(t, usualLinks) })
	w.source.cfg.Interval = time.Second
	first := w.next()
	w.now = w.now.Add(-time.Second + linksInterval/2)
	if soon, later := w.next(), w.next(); len(first.Links) != 2 || soon.Links != nil || len(later.Links) != 2 {
		t.Errorf("links %v, soon %v, and later %v", first.Links, soon.Links, later.Links)
	}
}
