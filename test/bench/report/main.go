// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Report runs the project's benchmarks and prints a table of the measured values,
// their references in the same run, and the goals.
//
//	go run ./report               run all benchmarks, which takes some minutes
//	go run ./report -short        run those of CI; fail if a value misses its goal by far
//	go run ./report -docs FILE    also replace the table in FILE
//
// The working directory must be test/bench; `make bench` sets it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

const top = "../.." // the repository root

func main() {
	short := flag.Bool("short", false, "run only the benchmarks that are stable enough to fail")
	docs := flag.String("docs", "", "write the table to a Markdown `file`")
	flag.Parse()
	if err := run(context.Background(), *short, *docs); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, short bool, docs string) error {
	found := results{}
	for _, g := range groups {
		if short && g.long {
			continue
		}
		fmt.Fprintf(os.Stderr, "measuring %s %s\n", g.pkg, g.bench)
		if err := steady(short, found, func() (string, error) { return g.run(ctx, short) }); err != nil {
			return err
		}
	}
	table := found.table()
	fmt.Print(table)
	if docs == "" {
		return nil
	}
	return writeDocs(ctx, docs, table)
}

func (g group) run(ctx context.Context, short bool) (string, error) {
	args := []string{"test", "-run=^$", "-bench=" + g.bench}
	switch {
	case g.args != "":
		args = append(args, strings.Fields(g.args)...)
	case short:
		args = append(args, "-short", "-count=3", "-benchtime=100ms")
	default:
		args = append(args, "-count=5", "-benchtime=200ms")
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stderr = filepath.Join(top, g.pkg), os.Stderr // may be in another module
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return string(out), err
}

// attempts is how many times a short run measures a group if a value misses its goal
// by far. A regression shows in each attempt, but other load on the machine doesn't.
const attempts = 3

// steady measures one group and adds its values to found. Each attempt replaces the
// values of the previous one.
func steady(short bool, found results, measure func() (string, error)) error {
	for n := 1; ; n++ {
		text, err := measure()
		if err != nil {
			return err
		}
		latest := parse(text)
		maps.Copy(found, latest)
		err = latest.farOff()
		if err == nil || !short {
			return nil
		}
		if n == attempts {
			return err
		}
		fmt.Fprintf(os.Stderr, "measuring again: %v\n", err)
	}
}

// results are the values that benchmarks have printed, by the name without the
// number of processors, a space, and the unit.
type results map[string][]float64

var processors = regexp.MustCompile(`-\d+$`)

// parse reads the output of `go test -bench`. A benchmark may occur several times.
func parse(text string) results {
	found := results{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := strings.TrimPrefix(processors.ReplaceAllString(fields[0], ""), "Benchmark")
		for i := 2; i+1 < len(fields); i += 2 {
			if v, err := strconv.ParseFloat(fields[i], 64); err == nil {
				found[name+" "+fields[i+1]] = append(found[name+" "+fields[i+1]], v)
			}
		}
	}
	return found
}

// median returns the median of a value over all runs. It is not ok if there is none.
func (r results) median(bench, unit string) (v float64, ok bool) {
	values := slices.Sorted(slices.Values(r[bench+" "+unit]))
	if len(values) == 0 {
		return 0, false
	}
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2, true
}

// farOff returns an error if a value misses its goal by more than its slack.
func (r results) farOff() error {
	var errs []error
	for _, w := range rows {
		if v, ok := r.median(w.bench, w.unit); ok && w.slack > 0 && v > w.goal*w.slack {
			errs = append(errs, fmt.Errorf("%s: "+w.form+" is beyond the limit of "+w.form, w.what, v, w.goal*w.slack))
		}
	}
	return errors.Join(errs...)
}

// table returns a Markdown table of all rows that were measured.
func (r results) table() string {
	var b strings.Builder
	b.WriteString("| what | against | measured | goal | also in this run |\n|---|---|---|---|---|\n")
	for _, w := range rows {
		v, ok := r.median(w.bench, w.unit)
		if !ok {
			continue
		}
		goal := ""
		if w.goal > 0 {
			goal = "≤ " + fmt.Sprintf(w.form, w.goal)
		}
		if w.goal > 0 && v > w.goal {
			goal += ", missed"
		}
		var also []string
		for _, a := range w.also {
			if v, ok := r.median(w.bench, a.unit); ok {
				also = append(also, fmt.Sprintf(a.form, v))
			}
		}
		fmt.Fprintf(&b, "| %s | %s | "+w.form+" | %s | %s |\n", w.what, w.against, v, goal, strings.Join(also, ", "))
	}
	return b.String()
}

// The table in the document is between these lines.
const (
	begin = "<!-- Below: written by `make bench`. -->\n"
	end   = "<!-- Above: written by `make bench`. -->\n"
)

func writeDocs(ctx context.Context, path, table string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	above, rest, found := strings.Cut(string(old), begin)
	_, below, closed := strings.Cut(rest, end)
	if !found || !closed {
		return fmt.Errorf("%s has no lines %q and %q", path, begin, end)
	}
	version, err := exec.CommandContext(ctx, top+"/scripts/version.sh").Output()
	if err != nil {
		return err
	}
	cpu, _ := os.ReadFile("/proc/cpuinfo") // exists only on Linux
	model := regexp.MustCompile(`model name\s*: (.*)`).FindStringSubmatch(string(cpu) + "model name: unknown processor\n")[1]
	head := fmt.Sprintf("%s · %s · %s/%s, %d × %s · version %s\n", time.Now().UTC().Format(time.DateOnly), runtime.Version(),
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), model, strings.TrimSpace(string(version)))
	return os.WriteFile(path, []byte(above+begin+"\n"+head+"\n"+table+"\n"+end+below), 0o644)
}
