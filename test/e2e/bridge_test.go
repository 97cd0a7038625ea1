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

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/semconv"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// runExample runs a program of examples until it ends.
func runExample(t *testing.T, name string, env []string, args ...string) *proc.Process {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	must.OK(t, built.Program(program, "examples/"+name))
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	p := proc.Start(t, cmd)
	if code := p.Wait(t); code != 0 {
		t.Fatalf("example %s ended with code %d:\n%s", name, code, p.Stderr.Text())
	}
	return p
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
	printed := runExample(t, "ringkernel", shipTo(address), "-duration", "2s")
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
	if len(last) != 2 {
		t.Fatalf("%d kernels in the summary, want 2:\n%s", len(last), printed.Stdout.Text())
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

// A Collector receives what the example of a Go agent prints.
func TestCollectorReceivesMetricsOfAGoAgent(t *testing.T) {
	t.Parallel()
	backend, address := sink(t, "grpc", anyPort)
	printed := runExample(t, "agent", shipTo(address), "-duration", "2s")
	backend.Stop(t, syscall.SIGTERM)
	sum := func(metric string) (n int64) {
		for series, v := range backend.totals(t)["go-agent"] {
			if strings.HasPrefix(series, metric+"{") {
				n += v.Int
			}
		}
		return n
	}
	arrived := fmt.Sprintf("%d writes, %d not found", sum("nixl.transfer.requests"), sum("nixl.errors"))
	if d := cmp.Diff(printed.Stdout.Text(), arrived); d != "" {
		t.Errorf("what arrived (-printed +arrived):\n%s", d)
	}
	backend.noComplaints(t)
}
