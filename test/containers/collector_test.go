// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containers

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// collector is the Collector in a container with the PID namespace of the host and
// the capabilities of the DaemonSet.
type collector struct {
	*container

	file    *otlpfile.File
	reports map[string]reported // by pod
}

const configuration = `
receivers:
  nixl_shm:
    discovery: {processes: {interval: 1s, env_attributes: {LOCAL_RANK: nixl.local_rank}}}
    stale_after: %v
    initial_delay: 0s
    collection_interval: 100ms
exporters:
  file: {path: /out/metrics.json, flush_interval: 20ms}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {metrics: {receivers: [nixl_shm], exporters: [file]}}
`

// startCollector starts a Collector that exports exited agents until staleAfter.
func startCollector(t *testing.T, staleAfter time.Duration) *collector {
	t.Helper()
	if os.Getenv(variable) == "" || os.Getenv(collectorVariable) == "" {
		t.Skip("run `make container-test`")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), fmt.Appendf(nil, configuration, staleAfter), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &collector{
		container: launch(t, collectorImage, []string{
			"--pid=host", "--user=0", "--cap-drop=all", "--cap-add=SYS_PTRACE,DAC_OVERRIDE,LEASE",
			"--security-opt=no-new-privileges", "--read-only", "--volume=" + dir + ":/out",
			"--cgroup-parent=" + shared.cgroup(),
		}, []string{"--config=/out/config.yaml"}),
		file: otlpfile.NewFile(filepath.Join(dir, "metrics.json")), reports: make(map[string]reported),
	}
	proc.Eventually(t, func() string {
		_, err := os.Stat(c.file.Path())
		if err != nil {
			return err.Error()
		}
		return ""
	})
	c.inspect()
	return c
}

// reported is what the Collector has exported about the agents of a pod.
type reported struct {
	events     int // newest total
	attributes map[string]string
}

// read adds new output of the Collector to reports.
func (c *collector) read() {
	c.t.Helper()
	list, err := c.file.Next()
	if err != nil {
		c.t.Fatal(err)
	}
	for _, collection := range list {
		for _, rm := range collection.ResourceMetrics().All() {
			r := reported{attributes: make(map[string]string)}
			for name, value := range rm.Resource().Attributes().All() {
				r.attributes[name] = value.AsString()
			}
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					r.events += events(m)
				}
			}
			c.reports[r.attributes["k8s.pod.uid"]] = r
		}
	}
}

// events returns the value of the metric nixl.events, and 0 for other metrics.
func events(m pmetric.Metric) (n int) {
	if m.Name() != "nixl.events" {
		return 0
	}
	for _, dp := range m.Sum().DataPoints().All() {
		n += int(dp.IntValue())
	}
	return n
}

// await waits until the Collector has exported a number of events of a pod.
func (c *collector) await(pod string, events int) reported {
	c.t.Helper()
	proc.Eventually(c.t, func() string {
		c.read()
		if got := c.reports[pod].events; got != events {
			return fmt.Sprintf("%d events of pod %s are exported, want %d", got, pod, events)
		}
		return ""
	})
	return c.reports[pod]
}

// pod returns the UID of a pod.
func pod(n int) string { return fmt.Sprintf("00000000-0000-0000-0000-%012d", n) }

// The totals include the last events before a container stops.
func TestCollectorCountsAllEventsOfAgentsInContainers(t *testing.T) {
	c := startCollector(t, 5*time.Minute)
	var agents []*agent
	for i, options := range [][]string{
		{"--env=NIXL_TELEMETRY_DIR=/rings"},
		{"--user=1001", "--tmpfs=/tmp:mode=1777", "--env=LOCAL_RANK=3"},
		{"--user=1002", "--env=NIXL_TELEMETRY_DIR=/dev/shm", "--env=OTEL_SERVICE_NAME=decode"},
		{"--user=1003", "--env=NIXL_TELEMETRY_DIR=/var/run/nixl", "--tmpfs=/run/nixl:mode=1777"},
	} {
		agents = append(agents, start(t, spec{pod(i), append(options, enable), nil}))
	}
	for range 3 {
		for i, a := range agents {
			a.interval()
			c.await(pod(i), a.written)
		}
	}
	for i, a := range agents {
		a.interval()
		a.stop()
		r := c.await(pod(i), a.written)
		want := map[string]string{"container.id": a.id, "process.executable.name": "agent", "process.pid": strconv.Itoa(a.pid), "nixl.agent.name": "agent"}
		switch i {
		case 1:
			want["nixl.local_rank"] = "3"
		case 2:
			want["service.name"] = "decode"
		}
		for name, value := range want {
			if r.attributes[name] != value {
				t.Errorf("agent %d: %s is %q, want %q", i, name, r.attributes[name], value)
			}
		}
	}
}

// The events that are in the ring when the container is killed count, and the
// totals continue in the next container.
func TestCollectorCountsAllEventsAcrossRestartsOfAContainer(t *testing.T) {
	c := startCollector(t, 5*time.Minute)
	total := 0
	for range 3 {
		a := start(t, spec{pod(1), []string{enable, "--env=NIXL_TELEMETRY_DIR=/dev/shm", "--user=1001"}, nil})
		a.interval()
		c.await(pod(1), total+a.written) // now the Collector has opened the ring
		for range 20 {
			a.interval()
		}
		a.kill()
		total += a.written
		c.await(pod(1), total)
	}
}

func TestCollectorHoldsNoFilesOfStoppedContainers(t *testing.T) {
	lives := 5
	if n, err := strconv.Atoi(os.Getenv("CONTAINER_LIVES")); err == nil {
		lives = n
	}
	c := startCollector(t, 2*time.Second)
	before := c.holds()
	for i := range lives {
		a := start(t, spec{pod(i), []string{enable, "--env=NIXL_TELEMETRY_DIR=/dev/shm", "--user=1001"}, nil})
		a.interval()
		c.await(pod(i), a.written)
		a.stop()
		c.await(pod(i), a.written)
	}
	proc.Eventually(t, func() string {
		if after := c.holds(); len(after) > len(before) {
			return fmt.Sprintf("the Collector holds\n%s\nbefore, it held\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
		}
		return ""
	})
}

// holds returns the Collector's open files and shared writable mappings.
func (c *collector) holds() (list []string) {
	c.t.Helper()
	dir := filepath.Join("/proc", strconv.Itoa(c.pid))
	open, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, fd := range open {
		if link, err := os.Readlink(filepath.Join(dir, "fd", fd.Name())); err == nil {
			list = append(list, link)
		}
	}
	maps, err := os.ReadFile(filepath.Join(dir, "maps"))
	if err != nil {
		c.t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, "rw-s") {
			list = append(list, strings.TrimSpace(line))
		}
	}
	return list
}
