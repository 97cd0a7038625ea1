//go:build linux

package e2e

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// liveTime is how long the live test simulates.
func liveTime(t *testing.T) time.Duration {
	t.Helper()
	if s := os.Getenv("NIXL_E2E_LIVE"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatalf("NIXL_E2E_LIVE: %v", err)
		}
		return d
	}
	if testing.Short() {
		return 10 * time.Second
	}
	return 30 * time.Second
}

// Agents of all layouts at 10,000 transfers/s each, which is as much as real
// agents get into a ring at NIXL's defaults: every event is counted, here and
// by the Collector behind.
func TestLive(t *testing.T) {
	t.Parallel()
	long, dir := liveTime(t), t.TempDir()
	backend, address := sink(t, "grpc", anyPort)
	c := setup{
		sample:   "otlp-grpc.yaml",
		overlays: []string{every(time.Second), exportTo("otlp_grpc", "file"), anyHealthPort},
		env:      []string{rings(dir), "OTEL_EXPORTER_OTLP_ENDPOINT=http://" + address},
	}.start(t)

	begun := time.Now()
	report := startSimulator(t, dir, "--layout", "mixed", "--agents", "5",
		"--rate", "10000", "--error-rate", "0.01", "--seed", "1", "--duration", long.String()).wait(t, long)
	took := time.Since(begun)
	t.Logf("%d transfers in %v", report.Sum.Operations, took)
	if want := uint64(5 * 10000 * long.Seconds()); report.Sum.Operations != want {
		t.Errorf("%d transfers were simulated, want %d", report.Sum.Operations, want)
	}
	nothingDropped(t, report)
	want := wantReport(report)
	// What a queue on disk still holds when the Collector stops, the next one
	// sends: so wait first.
	backend.awaitTotals(t, want)
	c.Stop(t, syscall.SIGTERM)
	backend.Stop(t, syscall.SIGTERM)
	mustEqual(t, want, c.totals(t))
	mustEqual(t, want, backend.totals(t))
	c.noComplaints(t)
	backend.noComplaints(t)
}
