// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Report runs the project's benchmarks and prints one table: what was
// measured, against what in the same run, what the goal is, and whether it is
// met.
//
//	go run ./report               everything, some minutes
//	go run ./report -short        what CI runs: fails where a ratio is far off
//	go run ./report -docs FILE    writes the table to FILE as well
//
// `make bench` runs it in test/bench, which must be the working directory.
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
	flag.BoolVar(&o.short, "short", false, "a short run, of what is steady enough to fail on")
	flag.StringVar(&o.docs, "docs", "", "write the table to a Markdown `file`")
	flag.StringVar(&o.raw, "raw", "", "write the benchmarks' own output, which benchstat reads, to a `file`")
	flag.StringVar(&o.only, "only", "", "run groups whose name contains this `text` only")
	flag.IntVar(&o.count, "count", 0, "how often each benchmark is run; 5, or 3 for a short run")
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

// attempts is how often a short run measures a group until no ratio is far off. A
// regression is there each time; what else runs on the machine isn't.
const attempts = 3

// steady measures one group and adds its values to found and its output to raw.
// Each attempt replaces the one before.
func steady(o options, found results, measure func() (string, error), raw io.Writer) error {
	for n := 1; ; n++ {
		text, err := measure()
		fmt.Fprint(raw, text)
		latest := parse(text) // what was printed before a failure is as good as any
		maps.Copy(found, latest)
		off := farOff(judge(latest))
		if err != nil || off == nil || !o.short || n == attempts {
			return err
		}
		fmt.Fprintf(os.Stderr, "measuring again: %v\n", off)
	}
}

// farOff is an error where a ratio misses its goal by more than its slack.
func farOff(lines []line) error {
	var errs []error
	for _, l := range lines {
		if l.far {
			errs = append(errs, fmt.Errorf("%s: %s, where %s is the goal, and %g times that is too much",
				l.what, l.value, l.goal, l.slack))
		}
	}
	return errors.Join(errs...)
}
