// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containers

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
)

// collector is the Collector in a container with the PID namespace of the host and
// the capabilities of the DaemonSet.
type collector struct {
	*container

	options    []string // of podman run
	file       *otlpfile.File
	agent      []string                     // attributes that distinguish agents in this test
	sums       map[string]*otlpfile.Sums    // of nixl.events, by agent
	attributes map[string]map[string]string // newest of the resource, by agent
	series     map[string]map[string]bool   // service.instance.id, by agent
}

const configuration = `
receivers:
  nixl_shm:
    discovery: {processes: {interval: 1s}}
    metrics: {nixl.events: {enabled: true}}
    stale_after: %v
    initial_delay: 0s
    collection_interval: 100ms
exporters:
  file: {path: /out/metrics.json, flush_interval: 20ms, append: true}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {metrics: {receivers: [nixl_shm], exporters: [file]}}
`

// startCollector starts a Collector that exports exited agents until staleAfter.
func startCollector(t *testing.T, staleAfter time.Duration) *collector {
	t.Helper()
	return configured(t, fmt.Sprintf(configuration, staleAfter))
}

// configured starts a Collector with a configuration that writes /out/metrics.json, and with
// more options of podman run.
func configured(t *testing.T, configuration string, options ...string) *collector {
	t.Helper()
	if os.Getenv(variable) == "" || os.Getenv(collectorVariable) == "" {
		t.Skip("run `make container-test`")
	}
	dir := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(configuration), 0o600))
	c := &collector{
		options: append([]string{
			"--pid=host", "--user=0", "--cap-drop=all", "--cap-add=SYS_PTRACE,DAC_OVERRIDE,LEASE",
			"--security-opt=no-new-privileges", "--read-only", "--volume=" + dir + ":/out",
			"--cgroup-parent=" + shared.cgroup(),
		}, options...),
		file: otlpfile.NewFile(filepath.Join(dir, "metrics.json")), agent: []string{"k8s.pod.uid"},
		sums: make(map[string]*otlpfile.Sums), attributes: make(map[string]map[string]string), series: make(map[string]map[string]bool),
	}
	c.start(t)
	must.Eventually(t, func() string {
		_, err := os.Stat(c.file.Path())
		if err != nil {
			return err.Error()
		}
		return ""
	})
	return c
}

func (c *collector) start(t *testing.T) {
	t.Helper()
	c.container = launch(t, collectorImage, c.options, []string{"--config=/out/config.yaml"})
}

// stop stops the Collector, which exports its last totals.
func (c *collector) stop() {
	c.t.Helper()
	must.OK(c.t, syscall.Kill(c.pid(), syscall.SIGTERM))
	if err := c.cmd.Wait(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		c.t.Fatal(err)
	}
}

// read adds new output of the Collector.
func (c *collector) read() {
	c.t.Helper()
	list, err := c.file.Next()
	must.OK(c.t, err)
	for _, collection := range list {
		for _, rm := range collection.ResourceMetrics().All() {
			attributes := make(map[string]string)
			for name, value := range rm.Resource().Attributes().All() {
				attributes[name] = value.AsString()
			}
			var parts []string
			for _, name := range c.agent {
				parts = append(parts, attributes[name])
			}
			agent := strings.Join(parts, " ")
			c.attributes[agent] = attributes
			for _, sm := range rm.ScopeMetrics().All() {
				sm.Metrics().RemoveIf(func(m pmetric.Metric) bool { return m.Name() != "nixl.events" })
			}
			if c.sums[agent] == nil {
				c.sums[agent], c.series[agent] = otlpfile.NewSums(), make(map[string]bool)
			}
			c.series[agent][attributes["service.instance.id"]] = true
			alone := pmetric.NewMetrics()
			rm.MoveTo(alone.ResourceMetrics().AppendEmpty())
			c.sums[agent].Add(alone)
		}
	}
}

// await waits until a backend would show a number of events of an agent. It returns the attributes.
func (c *collector) await(agent string, events int) map[string]string {
	c.t.Helper()
	must.Eventually(c.t, func() string {
		c.read()
		got := 0
		if sums := c.sums[agent]; sums != nil {
			totals, err := sums.Totals()
			must.OK(c.t, err)
			for _, series := range totals {
				for _, v := range series {
					got += int(v.Int)
				}
			}
		}
		if got != events {
			return fmt.Sprintf("%d events of %q are exported, want %d; there are %q", got, agent, events, slices.Sorted(maps.Keys(c.sums)))
		}
		return ""
	})
	return c.attributes[agent]
}

// pod returns the UID of a pod.
func pod(n int) string { return fmt.Sprintf("00000000-0000-0000-0000-%012d", n) }

// The totals include the last events before a container stops.
func TestCollectorCountsAllEventsOfAgentsInContainers(t *testing.T) {
	c := startCollector(t, 5*time.Minute)
	volume := filepath.Join(t.TempDir(), pod(4), "volumes", "kubernetes.io~empty-dir", "rings")
	must.OK(t, os.MkdirAll(volume, 0o777))
	must.OK(t, os.Chmod(volume, 0o777)) // ignore the umask
	list := []struct {
		options, args []string
		rank, service string // attributes
	}{
		{[]string{"--env=NIXL_TELEMETRY_DIR=/rings", "--env=LOCAL_RANK=1", enable}, nil, "1", "nixl"}, // in the container's layer
		{[]string{"--user=1001", "--tmpfs=/tmp:mode=1777", "--env=LOCAL_RANK=3", enable}, nil, "3", "nixl"},
		{[]string{"--user=1002", "--env=NIXL_TELEMETRY_DIR=/dev/shm", "--env=OTEL_SERVICE_NAME=decode", enable}, nil, "", "decode"},
		{[]string{"--user=1003", "--env=NIXL_TELEMETRY_DIR=/var/run/nixl", "--tmpfs=/run/nixl:mode=1777", enable}, nil, "", "nixl"}, // a symlink
		{[]string{"--user=1003", "--env=NIXL_TELEMETRY_DIR=/run/nixl", "--volume=" + volume + ":/run/nixl", enable}, nil, "", "nixl"},
		{[]string{"--env=NIXL_TELEMETRY_DIR=shm", "--workdir=/dev", enable}, nil, "", "nixl"},
		{[]string{"--user=1004"}, []string{"-dir=/dev/shm"}, "", "nixl"}, // set after the start
		{[]string{"--env=NIXL_TELEMETRY_DIR=/dev/shm", "--read-only", "--cap-drop=all", enable}, nil, "", "nixl"},
		{[]string{"--env=NIXL_TELEMETRY_DIR=/run/nixl", "--volume=" + overlayOnTmpfs(t), "--env=LOCAL_RANK=8", enable}, nil, "8", "nixl"},
	}
	var specs []spec
	for i, a := range list {
		specs = append(specs, spec{pod(i), a.options, a.args})
	}
	agents := startAll(t, specs...)
	for range 3 {
		for _, a := range agents {
			a.interval()
		}
		for i, a := range agents {
			c.await(pod(i), a.written)
		}
	}
	stopAll(agents...)
	for i, a := range agents {
		got := c.await(pod(i), a.written)
		want := map[string]string{
			"container.id": "", "process.executable.name": "", "process.pid": "", "nixl.agent.name": "agent",
			"nixl.local_rank": list[i].rank, "service.name": list[i].service,
		}
		shown := make(map[string]string)
		for name := range want {
			shown[name] = got[name]
		}
		if d := cmp.Diff(want, shown); d != "" {
			t.Errorf("attributes of agent %d (-want +got):\n%s", i, d)
		}
	}
}

// overlayOnTmpfs returns a volume at /run/nixl that is an overlay, whose upper directory is on tmpfs.
func overlayOnTmpfs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must.OK(t, syscall.Mount("none", dir, "tmpfs", 0, ""))
	t.Cleanup(func() { must.OK(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	lower, upper, work := filepath.Join(dir, "lower"), filepath.Join(dir, "upper"), filepath.Join(dir, "work")
	for _, d := range []string{lower, upper, work} {
		must.OK(t, os.Mkdir(d, 0o755))
	}
	return fmt.Sprintf("%s:/run/nixl:O,upperdir=%s,workdir=%s", lower, upper, work)
}

// The totals continue when another container of the pod reuses the name of the agent. The events that are
// in the ring when the container is killed count, and the Collector closes the files of stopped containers.
func TestCollectorCountsAllEventsAcrossRestartsOfAContainer(t *testing.T) {
	lives := 2 // killed and stopped
	if n, err := strconv.Atoi(os.Getenv("CONTAINER_LIVES")); err == nil {
		lives = n
	}
	c := startCollector(t, 2*time.Second)
	before := c.holds()
	total := 0
	for i := range lives {
		a := start(t, spec{pod(1), []string{enable, "--env=NIXL_TELEMETRY_DIR=/dev/shm", "--user=1001", "--env=NIXL_TELEMETRY_BUFFER_SIZE=16384"}, nil})
		a.interval()
		c.await(pod(1), total+a.written) // now the Collector has opened the ring
		for range 20 {
			a.interval()
		}
		if i%2 == 0 {
			a.kill()
		} else {
			stopAll(a)
		}
		total += a.written
		c.await(pod(1), total)
	}
	must.Eventually(t, func() string {
		if after := c.holds(); len(after) > len(before) {
			return fmt.Sprintf("the Collector holds\n%s\nbefore, it held\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
		}
		return ""
	})
}

// holds returns the Collector's open files and shared writable mappings.
func (c *collector) holds() (list []string) {
	c.t.Helper()
	dir := filepath.Join("/proc", strconv.Itoa(c.pid()))
	open, err := os.ReadDir(filepath.Join(dir, "fd"))
	must.OK(c.t, err)
	for _, fd := range open {
		if link, err := os.Readlink(filepath.Join(dir, "fd", fd.Name())); err == nil {
			list = append(list, link)
		}
	}
	maps, err := os.ReadFile(filepath.Join(dir, "maps"))
	must.OK(c.t, err)
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, "rw-s") {
			list = append(list, strings.TrimSpace(line))
		}
	}
	return list
}
