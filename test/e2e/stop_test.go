// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// Both intervals are an hour, so only the shutdown drains the rings.
func TestShutdownExportsTheLastEvents(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			a := newAgent(t, dir, "agent")
			c := setup{
				sample:   "local.yaml",
				overlays: []string{every(time.Hour), "receivers: {nixl_shm: {run_interval: 1h}}", exportTo("prometheus", "file")},
				env:      []string{rings(dir), "PORT=0"},
			}.start(t)
			c.await(t, func(got otlpfile.Totals) string { // the first collection has no delay
				if len(got) == 0 {
					return "no totals"
				}
				return ""
			})
			a.transfer(t, 100)
			c.Stop(t, sig)
			mustEqual(t, want(a), c.totals(t))
			c.noComplaints(t)
		})
	}
}

// Each reload shuts the receiver down, whose last export the backend rejects.
func TestCollectorReloadsItsConfigurationWhileTheBackendIsDown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newAgent(t, dir, "agent").transfer(t, 100)
	c := setup{
		overlays: []string{fmt.Sprintf(`
receivers: {nixl_shm: {directories: [%q]}}
exporters: {otlp_http: {endpoint: "http://127.0.0.1:%d", sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}}
service: {pipelines: {metrics: {receivers: [nixl_shm], exporters: [otlp_http]}}}
`, dir, proc.FreePort(t)), every(100 * time.Millisecond)},
	}.start(t)
	for reloads := 1; reloads <= 20; reloads++ {
		c.Signal(t, syscall.SIGHUP)
		must.Eventually(t, func() string {
			if n := c.Stderr.Count(contains("Everything is ready")); n != 1+reloads {
				return fmt.Sprintf("the Collector has started its pipelines %d times, want %d", n, 1+reloads)
			}
			return ""
		})
		must.Eventually(t, func() string {
			if proc.Idle(c.PID()) {
				return ""
			}
			return "the Collector is busy"
		})
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
	c := setup{
		sample:   "local.yaml",
		overlays: []string{every(100 * time.Millisecond)},
		env:      []string{rings(dir), fmt.Sprintf("PORT=%d", port)},
	}.start(t)

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
	c.noComplaints(t)
}

// pageHas returns a message unless the page has a line, ignoring the labels of the agent's resource. With
// several parts, it looks for a line that contains all of them.
func pageHas(t *testing.T, port int, parts ...string) string {
	t.Helper()
	page, err := get(t, port)
	if err != nil {
		return err.Error()
	}
	if len(parts) > 1 {
		for line := range strings.Lines(page) {
			has := true
			for _, part := range parts {
				has = has && strings.Contains(line, part)
			}
			if has {
				return ""
			}
		}
		return fmt.Sprintf("no line with %q in\n%s", parts, page)
	}
	for line := range strings.Lines(page) {
		if withoutResource(line) == parts[0] {
			return ""
		}
	}
	return fmt.Sprintf("no line %s in\n%s", parts[0], page)
}

// withoutResource removes the labels of the agent's resource from a line.
func withoutResource(line string) string {
	name, rest, found := strings.Cut(strings.TrimSpace(line), "{")
	labels, value, whole := strings.Cut(rest, "} ")
	if !found || !whole {
		return line
	}
	var kept []string
	for label := range strings.SplitSeq(labels, ",") {
		switch key, _, _ := strings.Cut(label, "="); key {
		case "host_name", "instance", "job", "nixl_agent_name", "nixl_telemetry_path",
			"service_instance_id", "service_name":
		default:
			kept = append(kept, label)
		}
	}
	return name + "{" + strings.Join(kept, ",") + "} " + value
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
