// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package dashboards

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// transfers is a ring, and what its agent has written to it in all its lives.
type transfers struct {
	*ringbuf.Writer

	count, bytes, micros uint64
}

func newTransfers(t *testing.T, layout ringbuf.Layout) *transfers {
	t.Helper()
	a := &transfers{}
	a.start(t, filepath.Join(t.TempDir(), "agent"), layout)
	return a
}

// start creates the ring as a new process of the agent does.
func (a *transfers) start(t *testing.T, path string, layout ringbuf.Layout) {
	t.Helper()
	w, err := ringbuf.Create(path, layout, 4096)
	must.OK(t, err)
	t.Cleanup(func() { _ = w.Close() })
	a.Writer = w
}

// write writes the events of n transfers. All transfers differ.
func (a *transfers) write(t *testing.T, n int) {
	t.Helper()
	for range n {
		a.count++
		bytes, micros := 4096+a.count, 1000+a.count
		a.bytes += bytes
		a.micros += micros
		events := []ringbuf.Event{
			ringbuf.NewEvent(ringbuf.TypeXferPostTime, 1), ringbuf.NewEvent(ringbuf.TypeXferTime, micros),
			ringbuf.NewEvent(ringbuf.TypeTxBytes, bytes), ringbuf.NewEvent(ringbuf.TypeTxRequests, 1),
		}
		if pushed, err := a.PushBatch(events); err != nil || pushed != len(events) {
			t.Fatalf("pushed %d of %d events: %v", pushed, len(events), err)
		}
	}
}

// drained waits until all events are committed, because a restart discards the others.
func (a *transfers) drained(t *testing.T) {
	t.Helper()
	must.Eventually(t, func() string {
		if h := ringtest.ReadHeader(t, a.Path()); !h.Drained() {
			return fmt.Sprintf("the ring is read up to %d of %d", h.ReadPos, h.WritePos)
		}
		return ""
	})
}

// awaitSums waits until the sums of all series of a host are what its agent has written.
func (b backend) awaitSums(t *testing.T, hostName string, a *transfers) {
	t.Helper()
	for metric, want := range map[string]float64{
		"nixl_transfer_requests_total":         float64(a.count),
		"nixl_transfer_io_bytes_total":         float64(a.bytes),
		"nixl_transfer_duration_seconds_count": float64(a.count),
		"nixl_transfer_duration_seconds_sum":   float64(a.micros) / 1e6,
	} {
		selector := fmt.Sprintf("%s{host_name=%q}[1h]", metric, hostName)
		b.awaitValue(t, "sum(last_over_time("+selector+"))", want)
		// The sums of increases are the same only if no series starts again.
		b.awaitValue(t, "sum(resets("+selector+"))", 0)
	}
}

func (b backend) awaitValue(t *testing.T, expr string, want float64) {
	t.Helper()
	must.Eventually(t, func() string {
		list, err := b.query(t, expr)
		if err != nil {
			t.Fatalf("%s: %s: %v", b.name, expr, err) // a retry doesn't help
		}
		if len(list) != 1 || math.Abs(list[0].value-want) > 1e-9*want {
			return fmt.Sprintf("%s: %s is %v, want %v", b.name, expr, list, want)
		}
		return ""
	})
}

// Two agents restart with another layout while the Collector runs, after it was stopped, and after it
// was killed. The layout is an attribute of only one of them, whose series end at a restart.
func TestBackendsAddUpToWhatAgentsWrote(t *testing.T) {
	t.Parallel()
	backends := startBackends(t, "nixl.telemetry.layout")
	agents := map[string]*transfers{"continues": newTransfers(t, ringbuf.V3), "ends": newTransfers(t, ringbuf.V3)}
	each := func(do func(a *transfers)) {
		for _, a := range agents {
			do(a)
		}
	}
	await := func() {
		for _, b := range backends {
			for hostName, a := range agents {
				b.awaitSums(t, hostName, a)
			}
		}
	}
	config := storing(t, agents, backends)
	collector := runCollector(t, config)
	for i, layout := range []ringbuf.Layout{ringbuf.V4, ringbuf.V2, ringbuf.V1} {
		each(func(a *transfers) { a.write(t, 10+i) })
		await()
		each(func(a *transfers) {
			a.write(t, 5) // exported before the restart, or after it
			a.drained(t)
		})
		switch i {
		case 0: // the agents restart while the Collector runs
		case 1:
			collector.Stop(t, syscall.SIGTERM)
		default:
			collector.Kill(t)
		}
		each(func(a *transfers) {
			a.start(t, a.Path(), layout)
			a.write(t, 3)
		})
		if i > 0 {
			collector = runCollector(t, config)
		}
		await()
	}
	for _, b := range backends {
		for hostName, series := range map[string]float64{"continues": 1, "ends": 4} {
			b.awaitValue(t, fmt.Sprintf("count(last_over_time(nixl_transfer_requests_total{host_name=%q}[1h]))", hostName), series)
		}
	}
}

// storing writes the configuration of a Collector with storage. It reads the rings of agents, of each on
// a host of that name.
func storing(t *testing.T, agents map[string]*transfers, backends []backend) (path string) {
	t.Helper()
	receivers, names := "", ""
	for hostName, a := range agents {
		receivers += fmt.Sprintf("  nixl_shm/%s:\n    directories: [%q]\n    resource: {host.name: %[1]s}\n    storage: file_storage\n"+
			"    initial_delay: 0s\n    collection_interval: 200ms\n", hostName, filepath.Dir(a.Path()))
		if hostName == "ends" {
			receivers += "    resource_attributes: {nixl.telemetry.layout: {enabled: true}}\n"
		}
		names += "nixl_shm/" + hostName + ", "
	}
	return exporting(t, receivers, names, "", backends)
}

// exporting writes the configuration of a Collector with storage that exports to backends.
func exporting(t *testing.T, receivers, receiverNames, processor string, backends []backend) (path string) {
	t.Helper()
	exporters, names := "", ""
	for _, b := range backends {
		exporters += fmt.Sprintf("  otlp_http/%s: {endpoint: %q, sending_queue: {storage: file_storage, num_consumers: 1}}\n", b.name, b.otlp)
		names += "otlp_http/" + b.name + ", "
	}
	dir := t.TempDir()
	path = filepath.Join(dir, "collector.yaml")
	text := fmt.Sprintf(`
extensions: {file_storage: {directory: %q}}
receivers:
%sprocessors: {cumulative_to_delta: {max_staleness: 0}}
exporters:
%sservice:
  extensions: [file_storage]
  pipelines: {metrics: {receivers: [%s], processors: [%s], exporters: [%s]}}
  telemetry: {metrics: {level: none}}
`, dir, receivers, exporters, receiverNames, processor, names)
	must.OK(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func runCollector(t *testing.T, config string) *proc.Process {
	t.Helper()
	return proc.Start(t, exec.CommandContext(t.Context(), built.Path(t, "OTELCOL_NIXL"), "--config="+config))
}
