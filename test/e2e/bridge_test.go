// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/identity"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/semconv"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// runExample runs one of the project's examples until it exits, and returns the process.
func runExample(t *testing.T, name string, env []string, args ...string) *proc.Process {
	t.Helper()
	p := startExample(t, name, env, args...)
	if code := p.Wait(t); code != 0 {
		t.Fatalf("example %s ended with code %d:\n%s", name, code, p.Stderr.Text())
	}
	return p
}

func startExample(t *testing.T, name string, env []string, args ...string) *proc.Process {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	must.OK(t, build(program, "examples/"+name))
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	return proc.Start(t, cmd)
}

// shipTo returns the environment of a program that exports to a Collector. By default, short programs
// export only once, at the end. During shutdown, the SDK cancels a running export, which may still
// arrive after the last one.
func shipTo(address string) []string {
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + address, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_TRACES_EXPORTER=none"}
}

// All metrics of the catalog must arrive, with the counts that the example prints.
func TestCollectorReceivesRingKernelMetrics(t *testing.T) {
	t.Parallel()
	backend, address := sink(t, "grpc", anyPort)
	printed := runExample(t, "ringkernel", shipTo(address),
		"-listen", "", "-duration", "2s", "-rate", "2000", "-bad", "0.1", "-pause-every", "500ms", "-pause", "200ms")
	backend.Stop(t, syscall.SIGTERM)
	got := backend.totals(t)[""]

	var names, want []string
	for series := range got {
		name, _, _ := strings.Cut(series, "{")
		names = append(names, name)
	}
	for _, m := range semconv.RingKernel() {
		want = append(want, m.Name)
	}
	slices.Sort(names)
	slices.Sort(want)
	if d := cmp.Diff(want, slices.Compact(names)); d != "" {
		t.Errorf("metrics (-want +got):\n%s", d)
	}
	// Find the last line of each kernel: "  parse: terminated, 3600 processed, …, 400 errors".
	kernel := regexp.MustCompile(`^  (\w+): \w+, (\d+) processed,.* (\d+) errors`)
	last := make(map[string][]string)
	for _, line := range printed.Stdout.Lines() {
		if m := kernel.FindStringSubmatch(line); m != nil {
			last[m[1]] = m
		}
	}
	if len(last) != 3 {
		t.Fatalf("%d kernels in the summary, want 3:\n%s", len(last), printed.Stdout.Text())
	}
	for id, m := range last {
		id = "ringkernel.kernel.id=" + id
		if n := got["ringkernel.messages.processed{"+id+"}"].Int; fmt.Sprint(n) != m[2] {
			t.Errorf("%s: %d messages arrived as processed, printed %s", id, n, m[2])
		}
		if n := got["ringkernel.message.duration{"+id+"}"].Count; fmt.Sprint(n) != m[2] {
			t.Errorf("%s: %d latencies arrived, printed %s", id, n, m[2])
		}
		var errors int64
		for series, v := range got {
			if strings.HasPrefix(series, "ringkernel.errors{") && strings.Contains(series, id+"}") {
				errors += v.Int
			}
		}
		if fmt.Sprint(errors) != m[3] {
			t.Errorf("%s: %d errors arrived, printed %s", id, errors, m[3])
		}
	}
	backend.noComplaints(t)
}

// A Go agent has the same resource attributes and series with a ring and with OTLP, except series
// that only a ring has.
func TestGoAgentHasTheSameSeriesByRingAndByOTLP(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := setup{overlays: []string{fmt.Sprintf(`
receivers:
  nixl_shm: {directories: [%q], collection_interval: 500ms}
  otlp: {protocols: {grpc: {endpoint: %q}}}
service:
  pipelines: {metrics: {receivers: [nixl_shm, otlp], exporters: [file]}}
`, dir, anyPort)}}.start(t)
	common := []string{"-duration", "2s", "-rate", "2000"}
	printed := map[string]*proc.Process{
		"ring": runExample(t, "agent", nil, append(common, "-name", "ring", "-ring", dir)...),
		"otlp": runExample(t, "agent", append(shipTo(c.otlpAddress(t)), rings(dir)), append(common, "-name", "otlp")...),
	}
	c.Stop(t, syscall.SIGTERM)

	totals := c.totals(t)
	names := make(map[string][]string)
	for agent, p := range printed {
		var writes, reads, bytes, missing int64
		if _, err := fmt.Sscanf(p.Stdout.Text(), "%d writes, %d reads, %d bytes, %d not found",
			&writes, &reads, &bytes, &missing); err != nil {
			t.Fatalf("%q: %v", p.Stdout.Text(), err)
		}
		for series, want := range map[string]int64{
			"nixl.transfer.requests{nixl.transfer.direction=transmit}": writes,
			"nixl.transfer.requests{nixl.transfer.direction=receive}":  reads,
			"nixl.errors{error.type=not_found}":                        missing,
		} {
			if v := totals[agent][series].Int; v != want {
				t.Errorf("%s: %s is %d, want %d", agent, series, v, want)
			}
		}
		for series := range totals[agent] {
			if !strings.HasPrefix(series, "nixl.telemetry.ring.") && !strings.HasPrefix(series, semconv.Events.Name+"{") {
				names[agent] = append(names[agent], series)
			}
		}
		slices.Sort(names[agent])
	}
	if d := cmp.Diff(names["ring"], names["otlp"]); d != "" {
		t.Errorf("series (-ring +OTLP):\n%s", d)
	}
	host, err := identity.HostName()
	must.OK(t, err)
	for agent, got := range c.resources(t) {
		if d := cmp.Diff(map[string]any{
			semconv.ServiceName:       semconv.ServiceNameNIXL,
			semconv.ServiceInstanceID: identity.InstanceID(host, filepath.Join(dir, agent)),
			semconv.AgentName:         agent,
			semconv.HostName:          host,
		}, got); d != "" {
			t.Errorf("resource attributes of agent %q (-want +got):\n%s", agent, d)
		}
	}
	c.noComplaints(t)
}

// resources returns the resource attributes of each agent. They must not change.
func (c *collector) resources(t *testing.T) map[string]map[string]any {
	t.Helper()
	all := make(map[string]map[string]any)
	for _, collection := range c.collections(t) {
		for _, rm := range collection.ResourceMetrics().All() {
			agent, attributes := otlpfile.Agent(rm.Resource()), rm.Resource().Attributes().AsRaw()
			if all[agent] == nil {
				all[agent] = attributes
			}
			if d := cmp.Diff(all[agent], attributes); d != "" {
				t.Errorf("resource attributes of agent %q change (-before +after):\n%s", agent, d)
			}
		}
	}
	return all
}

// otlpAddress returns the address of a Collector's OTLP receiver.
func (c *collector) otlpAddress(t *testing.T) string {
	t.Helper()
	for _, e := range c.entries() {
		if strings.HasPrefix(e.Message, "Starting ") && strings.HasSuffix(e.Message, " server") {
			return e.Endpoint
		}
	}
	t.Fatal("the Collector's log doesn't contain its address")
	return ""
}

// byAgent groups the series of one resource by the nixl.agent.name attribute of their points.
func byAgent(all otlpfile.Series) otlpfile.Totals {
	name := regexp.MustCompile(`nixl\.agent\.name=([^,}]*),?`)
	totals := make(otlpfile.Totals)
	for series, v := range all {
		agent := ""
		if m := name.FindStringSubmatch(series); m != nil {
			agent = m[1]
		}
		series = name.ReplaceAllString(series, "")
		series = strings.ReplaceAll(strings.ReplaceAll(series, ",}", "}"), "{}", "")
		if totals[agent] == nil {
			totals[agent] = make(otlpfile.Series)
		}
		totals[agent][series] = v
	}
	return totals
}

// The example program reads the rings and exports their metrics over OTLP.
func TestProgramExportsRingsWithoutTheReceiver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	backend, address := sink(t, "grpc", anyPort)
	shipper := startExample(t, "rings", shipTo(address), "-dir", dir)
	printed := runExample(t, "agent", nil, "-ring", dir, "-name", "a", "-duration", "1s", "-rate", "2000")
	shipper.WaitFor(t, "ring opened")
	shipper.Stop(t, syscall.SIGINT) // drains the ring and exports the last events
	backend.Stop(t, syscall.SIGTERM)

	var writes, reads, bytes, missing int64
	if _, err := fmt.Sscanf(printed.Stdout.Text(), "%d writes, %d reads, %d bytes, %d not found",
		&writes, &reads, &bytes, &missing); err != nil {
		t.Fatalf("%q: %v", printed.Stdout.Text(), err)
	}
	got := byAgent(backend.totals(t)[""])["a"]
	for series, want := range map[string]int64{
		"nixl.transfer.requests{nixl.transfer.direction=transmit}": writes,
		"nixl.transfer.requests{nixl.transfer.direction=receive}":  reads,
		"nixl.errors{error.type=not_found}":                        missing,
		"nixl.telemetry.ring.capacity":                             4096,
		"nixl.telemetry.ring.saturations":                          0,
		"nixl.memory.usage":                                        0,
	} {
		if v := got[series].Int; v != want {
			t.Errorf("%s is %d, want %d", series, v, want)
		}
	}
	if v := got["nixl.transfer.io{nixl.transfer.direction=transmit}"].Int + got["nixl.transfer.io{nixl.transfer.direction=receive}"].Int; v != bytes {
		t.Errorf("%d bytes arrived, printed %d", v, bytes)
	}
	backend.noComplaints(t)
}
