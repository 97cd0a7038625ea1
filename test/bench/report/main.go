// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Report runs the project's benchmarks and prints a table of the measured values,
// their references in the same run, the goals, and whether they are met.
//
//	go run ./report               run all benchmarks, which takes some minutes
//	go run ./report -short        run those of CI; fail if a ratio misses its goal by far
//	go run ./report -docs FILE    also replace the table in FILE
//
// The working directory must be test/bench; `make bench` sets it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	var o options
	flag.BoolVar(&o.short, "short", false, "run only the benchmarks that are stable enough to fail")
	flag.StringVar(&o.docs, "docs", "", "write the table to a Markdown `file`")
	flag.StringVar(&o.raw, "raw", "", "write the output of the benchmarks to a `file` for benchstat")
	flag.StringVar(&o.only, "only", "", "run only the groups whose names contain this `text`")
	flag.IntVar(&o.count, "count", 0, "number of runs of each benchmark (default 5, or 3 in a short run)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type options struct {
	short     bool
	docs, raw string
	only      string
	count     int
}

func run(ctx context.Context, o options, out io.Writer) error {
	var raw strings.Builder
	var errs []error
	found := make(results)
	for _, g := range groups() {
		if o.short && g.long || !strings.Contains(g.name, o.only) {
			continue
		}
		fmt.Fprintf(os.Stderr, "measuring %s\n", g.name)
		errs = append(errs, steady(o, found, func() (string, error) { return g.run(ctx, o) }, &raw))
	}
	if o.raw != "" {
		errs = append(errs, os.WriteFile(o.raw, []byte(raw.String()), 0o600))
	}
	lines := judge(found)
	printTable(out, lines)
	if o.docs != "" {
		errs = append(errs, writeDocs(ctx, o.docs, lines))
	}
	if o.short {
		errs = append(errs, farOff(lines))
	}
	return errors.Join(errs...)
}

// attempts is how many times a short run measures a group if a ratio misses its
// goal by far. A regression shows in each attempt, but other load on the machine
// doesn't.
const attempts = 3

// steady measures one group and adds its values to found and its output to raw.
// Each attempt replaces the values of the previous one.
func steady(o options, found results, measure func() (string, error), raw io.Writer) error {
	for n := 1; ; n++ {
		text, err := measure()
		fmt.Fprint(raw, text)
		latest := parse(text) // results that precede a failure are valid
		maps.Copy(found, latest)
		off := farOff(judge(latest))
		if err != nil || off == nil || !o.short || n == attempts {
			return err
		}
		fmt.Fprintf(os.Stderr, "measuring again: %v\n", off)
	}
}

// farOff returns an error if a ratio is beyond the limit of a short run.
func farOff(lines []line) error {
	var errs []error
	for _, l := range lines {
		if l.far {
			errs = append(errs, fmt.Errorf("%s: %s is beyond the limit of %s", l.what, l.value, l.limit))
		}
	}
	return errors.Join(errs...)
}
