// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// printTable writes the table for a terminal.
func printTable(out io.Writer, lines []line) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WHAT\tAGAINST\tMEASURED\tGOAL\tVERDICT\tIN THIS RUN")
	for _, l := range lines {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", l.what, l.against, l.value, l.goal, l.verdict(), l.beside)
	}
	_ = w.Flush() // to a terminal
}

// The table is between these lines.
const (
	begin = "<!-- Below: written by `make bench`. -->\n"
	end   = "<!-- Above: written by `make bench`. -->\n"
)

// writeDocs replaces the table in a Markdown file.
func writeDocs(ctx context.Context, path string, lines []line) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	above, rest, found := strings.Cut(string(old), begin)
	_, below, closed := strings.Cut(rest, end)
	if !found || !closed {
		return fmt.Errorf("%s has no lines %q and %q", path, begin, end)
	}
	var b strings.Builder
	b.WriteString(above + begin + "\n")
	fmt.Fprintf(&b, "%s · %s · %s/%s, %d × %s · version %s\n\n", time.Now().UTC().Format(time.DateOnly),
		goVersion(ctx), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), processor(), version(ctx))
	b.WriteString("| what | against | measured | goal | | in this run |\n|---|---|---|---|---|---|\n")
	for _, l := range lines {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", l.what, l.against, l.value, l.goal, l.verdict(), l.beside)
	}
	b.WriteString("\n" + end + below)
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

// processor returns the model name of the CPU.
func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo") // exists only on Linux
	for l := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(l, ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

func version(ctx context.Context) string { return printed(ctx, top+"/scripts/version.sh") }

func goVersion(ctx context.Context) string { return printed(ctx, "go", "env", "GOVERSION") }

func printed(ctx context.Context, name string, args ...string) string {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
