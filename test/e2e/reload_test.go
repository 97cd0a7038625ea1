// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/test/internal/otelcol"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// transfersPerSecond, with four events each, fill a ring of the default size in 6.8 seconds.
const transfersPerSecond = 150

// A reload waits for the exporter's timeout if the backend hangs. Meanwhile, agents continue to write.
func TestReloadLosesNoEventsWhateverTheBackendDoes(t *testing.T) {
	for _, backend := range []string{"is up", "refuses connections", "answers 503", "hangs"} {
		for _, queue := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, queue %t", backend, queue), func(t *testing.T) {
				t.Parallel()
				reloadLosesNothing(t, backend, queue)
			})
		}
	}
}

func reloadLosesNothing(t *testing.T, backend string, queue bool) {
	t.Helper()
	dir, address := t.TempDir(), "127.0.0.1:0"
	a := newAgent(t, dir, "agent")
	var sink *otlpfile.Sink
	var repair func()
	switch backend {
	case "hangs":
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address) // nobody accepts
		must.OK(t, err)
		address = l.Addr().String()
		repair = func() {
			must.OK(t, l.Close())
			sink = otlpfile.Listen(t, address)
		}
	case "refuses connections":
		address = fmt.Sprintf("127.0.0.1:%d", proc.FreePort(t))
		repair = func() { sink = otlpfile.Listen(t, address) }
	default:
		sink = otlpfile.Listen(t, address)
		address = sink.Address
		sink.SetDown(backend == "answers 503")
		repair = func() { sink.SetDown(false) }
	}
	c := otelcol.Setup{
		Overlays: []string{fmt.Sprintf(`
extensions: {file_storage: {directory: %q, fsync: false}}
receivers: {nixl_shm: {directories: [%q], storage: file_storage}}
exporters: {otlp_http: {endpoint: "http://%s", timeout: 5s, retry_on_failure: {initial_interval: 200ms, max_interval: 1s}, sending_queue: {enabled: %t}}}
service: {extensions: [file_storage], pipelines: {metrics: {receivers: [nixl_shm], exporters: [otlp_http]}}}
`, t.TempDir(), dir, address, queue), otelcol.Every(time.Second)},
	}.Start(t)
	most := 0 // events in the ring
	// write writes until a condition holds.
	write := func(what string, until func() bool) {
		t.Helper()
		written, began := len(a.events)/4, time.Now()
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for !until() {
			<-tick.C
			since := time.Since(began)
			if since > 2*time.Minute {
				t.Fatalf("no %s", what)
			}
			due := int(since*transfersPerSecond/time.Second) - (len(a.events)/4 - written)
			a.transfer(t, max(due, 0)) // fails if the ring is full
			n, err := a.Len()
			must.OK(t, err)
			most = max(most, n)
		}
	}
	ready := func(n int) func() bool {
		return func() bool { return c.Stderr.Count(contains("Everything is ready")) == n }
	}
	second := func() func() bool {
		end := time.Now().Add(2 * time.Second)
		return func() bool { return time.Now().After(end) }
	}
	write("second", second())
	began := time.Now()
	c.Signal(t, syscall.SIGHUP)
	write("reload", ready(2))
	t.Logf("the reload took %v; the ring had at most %d of %d events", time.Since(began).Round(10*time.Millisecond), most, a.Capacity()-1)
	write("second", second())
	repair()
	sink.AwaitTotals(t, want(a))
	c.Stop(t, syscall.SIGTERM)
}
