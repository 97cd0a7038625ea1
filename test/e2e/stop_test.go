// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/test/internal/otelcol"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// A reload shuts the receiver down, whose last export the backend rejects.
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
	c.Signal(t, syscall.SIGHUP)
	c.WaitFor(t, "The last collection was not exported")
	must.Eventually(t, func() string { return cmp.Diff(2, c.Stderr.Count(contains("Everything is ready"))) })
	must.EventuallyTrue(t, "idle Collector", func() bool { return proc.Idle(c.PID()) })
	c.Stop(t, syscall.SIGTERM) // with exit code 0
}

// `make run` uses this sample.
func TestPrometheusPageIsServedOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	dir, port := t.TempDir(), proc.FreePort(t)
	newAgent(t, dir, "prefill worker 0").transfer(t, 100)
	c := otelcol.Setup{
		Sample:   "local.yaml",
		Overlays: []string{otelcol.Every(100 * time.Millisecond)},
		Env:      []string{rings(dir), fmt.Sprintf("PORT=%d", port)},
	}.Start(t)
	for _, parts := range [][]string{
		{`nixl_transfer_requests_total{`, `nixl_transfer_direction="receive"`, `host_name=`, `nixl_agent_name="prefill worker 0"`, `service_instance_id=`, `} 50`},
		{`nixl_transfer_duration_seconds_bucket{`, `le="0.001"`, `} 1`}, // the first took 1000 µs, the others longer
		{`nixl_transfer_duration_seconds_bucket{`, `le="+Inf"`, `} 100`},
	} {
		must.Eventually(t, func() string { return pageHas(t, port, parts...) })
	}
	onLoopbackOnly(t, port)

	c.Stop(t, syscall.SIGTERM)
	if _, err := get(t, port); err == nil {
		t.Error("the page is still served")
	}
	c.NoComplaints(t)
}

// pageHas returns a message unless a line of the page has all parts.
func pageHas(t *testing.T, port int, parts ...string) string {
	t.Helper()
	page, err := get(t, port)
	if err != nil {
		return err.Error()
	}
	for line := range strings.Lines(page) {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			return ""
		}
	}
	return fmt.Sprintf("no line with %q in\n%s", parts, page)
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
