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

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

const (
	memoryLimit = "512m"    // as in the Helm chart
	maxMemory   = 300 << 20 // what the Collector may use; in a full run, memoryLimit, as the file exporter's JSON takes half of it
	maxCPU      = 0.5       // of a core
)

// hostileConfiguration has the defaults of the receiver, except that the test needn't wait
// for a collection.
const hostileConfiguration = `
extensions: {file_storage: {directory: /out/storage, create_directory: true}}
receivers:
  nixl_shm:
    discovery: {processes: {}}
    storage: file_storage
    collection_interval: 10s
    metrics: {nixl.events: {enabled: true}}
exporters:
  file: {path: /out/metrics.json, flush_interval: 100ms}
  file/logs: {path: /out/logs.json}
service:
  extensions: [file_storage]
  telemetry: {metrics: {level: none}}
  pipelines:
    metrics: {receivers: [nixl_shm], exporters: [file]}
    logs: {receivers: [nixl_shm], exporters: [file/logs]}
`

// hugeAttributes are 15 KB of attributes. Some are reserved, and some are equal on a
// Prometheus page.
func hugeAttributes() string {
	list := []string{
		"le=1", "quantile=1", "job=x", "instance=x", "__name__=x", "service.a.b=1", "service.a_b=2", "service.le=1", "error_type=x",
		"k8s.pod.uid=" + pod(0), "service.instance.id=x", "host.name=x", "nixl.agent.name=agent", "nixl_agent_name=x",
	}
	for i := 0; len(strings.Join(list, ",")) < 15<<10; i++ {
		list = append(list, fmt.Sprintf("service.k%d=%s", i, strings.Repeat("x", 200)))
	}
	return strings.Join(list, ",")
}

// attacker is a hostile container.
type attacker struct {
	name     string
	attack   string // of the agent
	n, short int    // how often; short in a short run
	options  []string
}

func attackers() []attacker {
	return []attacker{
		{name: "sparse rings that claim to be full", attack: "sparse", n: 3, short: 3},
		{name: "many files from each of six processes", attack: "files", n: 60_000, short: 5000},
		{name: "many files in many directories", attack: "directories", n: 4000, short: 200},
		{name: "rings with random names", attack: "rings", n: 4090, short: 4090},
		{name: "15 KB of attributes, some reserved", attack: "flood", n: 330, short: 330, options: []string{
			"--env=OTEL_RESOURCE_ATTRIBUTES=" + hugeAttributes(), "--env=LOCAL_RANK=" + strings.Repeat("9", 15<<10),
		}},
		{name: "many processes", attack: "processes", n: 2000, short: 100},
		{name: "identity of another pod's agent", attack: "flood", n: 3, short: 3, options: []string{
			"--env=OTEL_SERVICE_NAME=other", "--env=LOCAL_RANK=0", "--env=POD_UID=" + pod(0),
			"--env=OTEL_RESOURCE_ATTRIBUTES=k8s.pod.uid=" + pod(0) + ",container.id=" + strings.Repeat("a", 64),
		}},
		{name: "headers that change all the time", attack: "headers", n: 50, short: 50},
		{name: "links, FIFOs, sockets and devices", attack: "odd", n: 100, short: 100, options: []string{"--cap-add=MKNOD"}},
		{name: "a new random agent every second", attack: "names", n: 1, short: 1},
		{name: "rings that are always full", attack: "full", n: 250, short: 250},
		{name: "restarts under another service", attack: "streams", n: 100, short: 100},
		{name: "stores of exited processes", attack: "stores", n: 4000, short: 2000},
		{name: "many mappings", attack: "mappings", n: 10, short: 4},
		{name: "slow transfers of many agents", attack: "slow", n: 250, short: 250},
		{name: "files with space beyond their end", attack: "beyond", n: 2, short: 2},
		{name: "files with holes", attack: "holes", n: 2, short: 2},
		{name: "truncated files", attack: "truncated", n: 2, short: 2},
		{name: "files that are written back", attack: "written", n: 2, short: 2},
		{name: "renamed files", attack: "renamed", n: 2, short: 2},
		{name: "restarts", attack: "restarted", n: 2, short: 2},
	}
}

// hostileDuration returns how long the attacks last, and whether they have their full size.
func hostileDuration(t *testing.T) (time.Duration, bool) {
	t.Helper()
	text := os.Getenv("HOSTILE")
	if text == "" {
		return 10 * time.Second, false
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("HOSTILE: %v", err)
	}
	return d, true
}

// start starts an attacker in a pod, and waits until it has done its work.
func (a attacker) start(t *testing.T, n int, full bool) {
	t.Helper()
	times := a.short
	if full {
		times = a.n
	}
	options := append([]string{
		enable, "--env=NIXL_TELEMETRY_DIR=/dev/shm", "--shm-size=2g", "--pids-limit=0",
		"--cgroup-parent=" + shared.cgroup() + "/kubepods/burstable/pod" + pod(n),
	}, a.options...)
	c := launch(t, agentImage, options, []string{"-attack=" + a.attack, "-n=" + strconv.Itoa(times)})
	began := time.Now()
	if line, err := c.line(5 * must.Patience); err != nil || line != "0" {
		t.Fatalf("%s: %q, %v after %v", a.name, line, err, time.Since(began))
	}
	t.Logf("%s: ready after %v", a.name, time.Since(began))
}

// Four agents run next to hostile containers. HOSTILE=10m makes the attacks larger, and
// sets how long they last. Then, no ring of these agents may ever be full.
func TestHostileContainersHarmNoOtherAgent(t *testing.T) {
	duration, full := hostileDuration(t)
	// The attackers saturate all CPUs. This test is about the limits of the Collector rather than those of the scheduler, so the
	// Collector has the largest weight: with four times the weight of all pods together, Linux 6.18 still delayed it by 0.9 s.
	c := configured(t, hostileConfiguration, "--memory="+memoryLimit, "--cpu-shares=262144")
	var args []string
	if !full {
		args = []string{"-drop"} // other programs may need the machine
	}
	var agents []*agent
	for i := range 4 {
		agents = append(agents, start(t, spec{pod(i), []string{enable, "--env=NIXL_TELEMETRY_DIR=/dev/shm", "--user=1001"}, args}))
	}
	interval := time.NewTicker(100 * time.Millisecond)
	defer interval.Stop()
	peak := int64(0)
	run := func(d time.Duration) {
		t.Helper()
		for end := time.Now().Add(d); time.Now().Before(end); <-interval.C {
			peak = max(peak, c.memory())
			for _, other := range agents {
				other.interval()
			}
		}
	}
	for _, a := range agents {
		a.interval()
		ring := fmt.Sprintf("/proc/%d/root/dev/shm/agent", a.pid())
		must.EventuallyTrue(t, "drained ring", func() bool { return ringtest.ReadHeader(t, ring).Drained() })
	}
	run(time.Second)
	list := attackers()
	for i, a := range list {
		a.start(t, 100+i, full)
		run(duration / time.Duration(2*len(list)))
	}
	before, began := proc.CPU(t, c.pid()), time.Now()
	run(duration / 2)
	used := (proc.CPU(t, c.pid()) - before).Seconds() / time.Since(began).Seconds()
	for i, other := range agents {
		c.await(pod(i), other.written)
	}
	t.Logf("the Collector used %d MB at most, and %.2f of a core", peak>>20, used)
	if !full && peak > maxMemory {
		t.Errorf("the Collector used %d MB, want at most %d", peak>>20, maxMemory>>20)
	}
	if full && used > maxCPU {
		t.Errorf("the Collector used %.2f of a core, want at most %.2f", used, maxCPU)
	}
	if _, err := os.Stat(filepath.Join("/proc", strconv.Itoa(c.pid()))); err != nil {
		t.Errorf("the Collector has exited: %v", err)
	}
}

// memory returns the resident size of the Collector in bytes. It excludes the pages of rings, which
// belong to the containers that have written them.
func (c *collector) memory() (size int64) {
	c.t.Helper()
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(c.pid()), "status"))
	must.OK(c.t, err)
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && (fields[0] == "RssAnon:" || fields[0] == "RssFile:") {
			kb, err := strconv.ParseInt(fields[1], 10, 64)
			must.OK(c.t, err)
			size += kb << 10
		}
	}
	return size
}
