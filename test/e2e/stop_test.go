// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/test/internal/otelcol"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// Both intervals are an hour, so only the shutdown drains the rings.
func TestShutdownExportsTheLastEvents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := newAgent(t, dir, "agent")
	c := otelcol.Setup{
		Sample:   "local.yaml",
		Overlays: []string{otelcol.Every(time.Hour), "receivers: {nixl_shm: {run_interval: 1h}}", otelcol.ExportTo("prometheus", "file")},
		Env:      []string{rings(dir), "PORT=0"},
	}.Start(t)
	must.EventuallyTrue(t, "first collection", func() bool { return len(c.Totals(t)) > 0 }) // it has no delay
	a.transfer(t, 100)
	c.Stop(t, syscall.SIGINT)
	mustEqual(t, want(a), c.Totals(t))
	c.NoComplaints(t)
}

// Each reload shuts the receiver down, whose last export the backend rejects.
func TestCollectorReloadsItsConfigurationWhileTheBackendIsDown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newAgent(t, dir, "agent").transfer(t, 100)
	c := otelcol.Setup{
		Overlays: []string{fmt.Sprintf(`
receivers: {nixl_shm: {directories: [%q]}}
exporters: {otlp_http: {endpoint: "http://127.0.0.1:%d", sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}}
service: {pipelines: {metrics: {receivers: [nixl_shm], exporters: [otlp_http]}}}
`, dir, proc.FreePort(t)), otelcol.Every(100 * time.Millisecond)},
	}.Start(t)
	for reloads := 1; reloads <= 3; reloads++ {
		c.Signal(t, syscall.SIGHUP)
		must.Eventually(t, func() string {
			if n := c.Stderr.Count(contains("Everything is ready")); n != 1+reloads {
				return fmt.Sprintf("the Collector has started its pipelines %d times, want %d", n, 1+reloads)
			}
			return ""
		})
		must.EventuallyTrue(t, "idle Collector", func() bool { return proc.Idle(c.PID()) })
	}
	if c.Stderr.Count(contains("The last collection was not exported")) == 0 {
		t.Error("no export at a shutdown has failed")
	}
	c.Stop(t, syscall.SIGTERM) // with exit code 0
}

// `make run` uses this sample.
func TestPrometheusPageIsServedOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	dir, port := t.TempDir(), proc.FreePort(t)
	a := newAgent(t, dir, "prefill worker 0")
	a.transfer(t, 100)
	c := otelcol.Setup{
		Sample:   "local.yaml",
		Overlays: []string{otelcol.Every(100 * time.Millisecond)},
		Env:      []string{rings(dir), fmt.Sprintf("PORT=%d", port)},
	}.Start(t)

	series := a.want()
	size := series["nixl.transfer.size{nixl.transfer.direction=receive}"]
	for _, line := range []string{
		fmt.Sprintf(`nixl_transfer_io_bytes_total{nixl_transfer_direction="transmit"} %d`,
			series["nixl.transfer.io{nixl.transfer.direction=transmit}"].Int),
		`nixl_transfer_requests_total{nixl_transfer_direction="receive"} 50`,
		`nixl_errors_total{error_type="backend"} 0`,
		`nixl_events_total{nixl_event_category="performance",nixl_event_name="agent_xfer_time"} 100`,
		`nixl_telemetry_ring_capacity{} 4096`,
		`nixl_telemetry_ring_saturations_total{} 0`,
		fmt.Sprintf(`nixl_transfer_size_bytes_sum{nixl_transfer_direction="receive"} %v`, size.Sum),
		`nixl_transfer_duration_seconds_count{} 100`,
		`nixl_transfer_duration_seconds_bucket{le="0.001"} 1`, // the first took 1000 µs, the others longer
		`nixl_transfer_duration_seconds_bucket{le="+Inf"} 100`,
	} {
		must.Eventually(t, func() string { return pageHas(t, port, line) })
	}
	must.Eventually(t, func() string {
		return pageHas(t, port, `host_name=`, `nixl_agent_name="prefill worker 0"`, `service_instance_id=`)
	})
	onLoopbackOnly(t, port)

	c.Stop(t, syscall.SIGTERM)
	if _, err := get(t, port); err == nil {
		t.Error("the page is still served")
	}
	c.NoComplaints(t)
}

// pageHas returns a message unless a line of the page has all parts, ignoring the labels of the agent's
// resource in the first one.
func pageHas(t *testing.T, port int, parts ...string) string {
	t.Helper()
	page, err := get(t, port)
	if err != nil {
		return err.Error()
	}
	for line := range strings.Lines(page) {
		missing := func(part string) bool {
			return !strings.Contains(line, part) && !strings.Contains(withoutResource(line), part)
		}
		if !slices.ContainsFunc(parts, missing) {
			return ""
		}
	}
	return fmt.Sprintf("no line with %q in\n%s", parts, page)
}

var resourceLabel = regexp.MustCompile(`(host_name|instance|job|nixl_agent_name|nixl_telemetry_path|service_instance_id|service_name)="[^"]*",?`)

// withoutResource removes the labels of the agent's resource from a line.
func withoutResource(line string) string {
	return strings.Replace(resourceLabel.ReplaceAllString(line, ""), ",}", "}", 1)
}

// get fetches the Prometheus page.
func get(t *testing.T, port int) (string, error) {
	t.Helper()
	url := fmt.Sprintf("http://127.0.0.1:%d/metrics", port)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", url, resp.Status)
	}
	return string(page), err
}

// onLoopbackOnly fails the test if a port is reachable from other machines.
func onLoopbackOnly(t *testing.T, port int) {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	must.OK(t, err)
	for _, a := range addresses {
		ip, _, err := net.ParseCIDR(a.String())
		if err != nil || ip.IsLoopback() || ip.IsLinkLocalUnicast() {
			continue
		}
		address := net.JoinHostPort(ip.String(), fmt.Sprint(port))
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
			t.Errorf("%s is reachable", address)
		}
	}
}
