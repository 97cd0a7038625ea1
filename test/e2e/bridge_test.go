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
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/semconv"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
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

// shipTo returns the environment of a program that exports to a backend. By default, short programs
// export only once, at the end.
func shipTo(backend *otlpfile.Sink) []string {
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + backend.URL(), "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_TRACES_EXPORTER=none"}
}

// All metrics of the catalog must arrive, with the counts that the example prints.
func TestRingKernelExampleExportsWhatItPrints(t *testing.T) {
	t.Parallel()
	backend := otlpfile.NewSink(t)
	printed := runExample(t, "ringkernel", shipTo(backend), "-duration", "2s")
	got := backend.Totals(t)[""]

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
	last := make(map[string][]string) // by ID
	for _, line := range printed.Stdout.Lines() {
		if m := kernel.FindStringSubmatch(line); m != nil {
			last[m[1]] = m
		}
	}
	if len(last) != 2 {
		t.Fatalf("%d kernels in the summary, want 2:\n%s", len(last), printed.Stdout.Text())
	}
	for id, printed := range last {
		attribute := "ringkernel.kernel.id=" + id
		var errors int64
		for series, v := range got {
			if strings.HasPrefix(series, "ringkernel.errors{") && strings.Contains(series, attribute+"}") {
				errors += v.Int
			}
		}
		processed := fmt.Sprint(got["ringkernel.messages.processed{"+attribute+"}"].Int)
		arrived := []string{processed, fmt.Sprint(errors), fmt.Sprint(got["ringkernel.message.duration{"+attribute+"}"].Count)}
		if d := cmp.Diff([]string{printed[2], printed[3], printed[2]}, arrived); d != "" {
			t.Errorf("processed messages, errors and latencies of %s (-printed +arrived):\n%s", id, d)
		}
	}
}

func TestAgentExampleExportsWhatItPrints(t *testing.T) {
	t.Parallel()
	backend := otlpfile.NewSink(t)
	printed := runExample(t, "agent", shipTo(backend), "-duration", "2s")
	sum := func(metric string) (n int64) {
		for series, v := range backend.Totals(t)[""] { // the name is an attribute of the points
			if strings.HasPrefix(series, metric+"{") && strings.Contains(series, "nixl.agent.name=go-agent") {
				n += v.Int
			}
		}
		return n
	}
	arrived := fmt.Sprintf("%d writes, %d not found", sum("nixl.transfer.requests"), sum("nixl.errors"))
	if d := cmp.Diff(printed.Stdout.Text(), arrived); d != "" {
		t.Errorf("what arrived (-printed +arrived):\n%s", d)
	}
}
