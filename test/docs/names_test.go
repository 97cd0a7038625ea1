// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
)

var (
	agentMetric     = regexp.MustCompile(`^(?:nixl|ringkernel|splitinfer)(?:\.[a-z_]+)+(?:\.\*)?$`)
	collectorMetric = regexp.MustCompile(`^otelcol_(receiver_nixl_shm_[a-z_]+)`)
	logLine         = regexp.MustCompile(`^[A-Za-z][a-z'-]*(?: [A-Za-z'-]+)+$`)
	program         = regexp.MustCompile(`^(?:fuser|journalctl|kubectl|make|nixlring) `)
	command         = regexp.MustCompile(`^(?:sudo )?(?:bin/)?nixlring ([a-z]+)(.*)`)
	flag            = regexp.MustCompile(`--[a-z][a-z0-9-]*`)
	concatenation   = regexp.MustCompile(`" \+\s*"`)
)

// memoryLimit is what the Collector's memory_limiter logs.
const memoryLimit = "data refused due to high memory usage"

// Someone who looks for a metric that a document names must find it.
func TestDocumentsNameMetricsThatExist(t *testing.T) {
	t.Parallel()
	catalog := source(t, "semconv")
	own := read(t, "receiver/nixlshmreceiver/metadata.yaml")
	found := 0
	forEachSpan(t, func(file, span string) {
		if agentMetric.MatchString(span) {
			found++
			if name := `"` + strings.TrimSuffix(span, "*"); !strings.Contains(catalog, name) {
				t.Errorf("%s: the catalog has no %s", file, span)
			}
		}
		if m := collectorMetric.FindStringSubmatch(span); m != nil {
			found++
			if !strings.Contains(own, "\n    "+m[1]+":\n") {
				t.Errorf("%s: the receiver has no %s", file, m[0])
			}
		}
	})
	if found < 50 {
		t.Errorf("the documents name %d metrics only", found)
	}
}

// Someone who searches the log for a line that troubleshooting.md has must find it.
func TestTroubleshootingQuotesTheLog(t *testing.T) {
	t.Parallel()
	texts := source(t, "ringbuf", "internal", "receiver")
	found := 0
	forEachSpan(t, func(file, span string) {
		if file != "docs/troubleshooting.md" || !logLine.MatchString(span) || program.MatchString(span) {
			return
		}
		found++
		if !strings.Contains(texts, span) && span != memoryLimit {
			t.Errorf("%s: nothing logs %q", file, span)
		}
	})
	if found < 15 {
		t.Errorf("it quotes %d lines only", found)
	}
}

func TestDocumentsUseCommandsAndFlagsThatExist(t *testing.T) {
	t.Parallel()
	nixlring := filepath.Join(t.TempDir(), "nixlring")
	build := exec.CommandContext(t.Context(), "go", "build", "-C", "cmd/nixlring", "-o", nixlring, ".")
	build.Dir = ringtest.Root(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	helps := make(map[string]string)
	found := 0
	forEachSpan(t, func(file, span string) {
		m := command.FindStringSubmatch(span)
		if m == nil || m[1] == "session" {
			return
		}
		found++
		help, ok := helps[m[1]]
		if !ok {
			out, err := exec.CommandContext(t.Context(), nixlring, m[1], "--help").Output()
			if err != nil || !strings.Contains(string(out), "\n  nixlring "+m[1]) {
				t.Errorf("%s: nixlring has no command %s", file, m[1])
				return
			}
			help = string(out)
			helps[m[1]] = help
		}
		for _, name := range flag.FindAllString(m[2], -1) {
			if name != "--help" && !strings.Contains(help, name+" ") {
				t.Errorf("%s: nixlring %s has no flag %s", file, m[1], name)
			}
		}
	})
	if found < 20 {
		t.Errorf("the documents use %d commands only", found)
	}
}

// forEachSpan calls fn for each code span, and each line of an indented code block,
// of all documents but the changelog.
func forEachSpan(t *testing.T, fn func(file, span string)) {
	t.Helper()
	for _, file := range documents(t) {
		text := fence.ReplaceAllString(read(t, file), "")
		for line := range strings.Lines(text) {
			if code, ok := strings.CutPrefix(line, "    "); ok {
				fn(file, strings.TrimSpace(code))
			}
		}
		// A span may continue on the next line.
		for _, span := range codeSpan.FindAllString(strings.ReplaceAll(text, "\n", " "), -1) {
			fn(file, strings.Trim(span, "`"))
		}
	}
}

// source returns the Go code in directories, without tests, and with every string
// that is written on several lines as one.
func source(t *testing.T, directories ...string) string {
	t.Helper()
	var all strings.Builder
	for _, dir := range directories {
		err := filepath.WalkDir(filepath.Join(ringtest.Root(t), dir), func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
				return err
			}
			text, err := os.ReadFile(file)
			all.Write(text)
			return err
		})
		must.OK(t, err)
	}
	return concatenation.ReplaceAllString(all.String(), "")
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(ringtest.Root(t), file))
	must.OK(t, err)
	return string(text)
}
