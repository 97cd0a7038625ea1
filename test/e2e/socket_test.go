// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// shown is an agent in the output of nixlring top.
type shown struct {
	Path       string            `json:"path"`
	Reader     string            `json:"reader"`
	Alive      *bool             `json:"agent_alive"`
	Transmit   uint64            `json:"transmit_bytes"`
	Receive    uint64            `json:"receive_bytes"`
	Transfers  uint64            `json:"transfers"`
	Busy       float64           `json:"transfer_time_seconds"`
	Post       float64           `json:"post_time_seconds"`
	Errors     uint64            `json:"errors"`
	Attributes map[string]string `json:"attributes"`
}

// nixlring runs a command and decodes its output. Whether agents have problems doesn't matter.
func nixlring(t *testing.T, result any, args ...string) {
	t.Helper()
	p := proc.Start(t, exec.CommandContext(t.Context(), built.Nixlring, args...))
	p.Wait(t)
	if err := json.Unmarshal([]byte(p.Stdout.Text()), result); err != nil {
		t.Fatalf("nixlring %v: %v\n%s", args, err, p.Stdout.Text())
	}
}

// The Collector takes the events out of the rings, so only it knows the totals. The tools must show
// exactly what the agents wrote and what is exported.
func TestToolsShowWhatTheCollectorCounts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run, err := os.MkdirTemp("", "nixl") //nolint:usetesting // t.TempDir may be too long for a socket
	must.OK(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(run) })
	socket := filepath.Join(run, "private", "receiver.sock")
	c := setup{
		sample:   "local.yaml",
		overlays: []string{every(time.Second), exportTo("file"), fmt.Sprintf("receivers: {nixl_shm: {socket: %q}}\n", socket)},
		env:      []string{rings(dir)},
	}.start(t)
	simulator := startSimulator(t, dir, "--layout", "mixed", "--agents", "5", "--rate", "500", "--error-rate", "0.01", "--seed", "3", "--duration", "4s")
	must.Eventually(t, func() string {
		var list []shown
		nixlring(t, &list, "top", "--socket", socket, "--once", "--window", "100ms", "--output", "json")
		if len(list) != 5 || list[0].Transfers == 0 {
			return fmt.Sprintf("%d agents are shown", len(list))
		}
		return ""
	})
	var verdict struct {
		Host   string `json:"host"`
		Agents int    `json:"agents"`
	}
	nixlring(t, &verdict, "why", "--socket", socket, "--for", "500ms", "-o", "json")
	if host, err := os.Hostname(); err != nil || verdict.Host != host || verdict.Agents != 5 {
		t.Errorf("%+v, %v", verdict, err)
	}
	report := simulator.wait(t, 4*time.Second)
	nothingDropped(t, report)

	var list []shown
	nixlring(t, &list, "top", "--socket", socket, "--once", "--window", "100ms", "--output", "json")
	want := wantReport(t, report)
	if len(list) != len(want) {
		t.Errorf("%d agents are shown, want %d", len(list), len(want))
	}
	for _, a := range list {
		series := want[a.Path]
		var errors, transfers int64
		for name, v := range series {
			if strings.HasPrefix(name, "nixl.errors{") {
				errors += v.Int
			}
		}
		for _, direction := range []string{"transmit", "receive"} {
			transfers += series["nixl.transfer.requests{nixl.transfer.direction="+direction+"}"].Int
		}
		for _, one := range []struct {
			what      string
			got, want float64
		}{
			{"bytes sent", float64(a.Transmit), float64(series["nixl.transfer.io{nixl.transfer.direction=transmit}"].Int)},
			{"bytes received", float64(a.Receive), float64(series["nixl.transfer.io{nixl.transfer.direction=receive}"].Int)},
			{"transfers", float64(a.Transfers), float64(transfers)},
			{"transfer time in µs", math.Round(1e6 * a.Busy), math.Round(1e6 * series["nixl.transfer.duration"].Sum)},
			{"post time in µs", math.Round(1e6 * a.Post), math.Round(1e6 * series["nixl.transfer.post.duration"].Sum)},
			{"errors", float64(a.Errors), float64(errors)},
		} {
			if one.got != one.want || one.want == 0 {
				t.Errorf("%s: %s: %v, want %v", a.Path, one.what, one.got, one.want)
			}
		}
		if a.Attributes["nixl.agent.name"] != filepath.Base(a.Path) || a.Attributes["service.name"] != "nixl" || a.Reader != filepath.Base(built.Collector) {
			t.Errorf("%+v", a)
		}
	}

	c.awaitTotals(t, want) // the exports are those without clients
	c.noComplaints(t)
}
