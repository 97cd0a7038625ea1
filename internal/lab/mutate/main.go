// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Mutate measures what the simulation and the tests find: it applies the bugs of bugs.txt to
// the core, one at a time, and runs the simulation with each. If the simulation doesn't find a
// bug, the tests of the packages run. Run it with `make mutate`, in the root directory.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

var (
	seeds = flag.Uint64("seeds", 20000, "number of seeds to simulate for each bug")
	every = flag.Int("every", 1, "apply only every nth bug")
	only  = flag.String("only", "", "apply only bugs whose rules match this regular expression")
	races = flag.String("overlay", "", "only write the overlay that the simulation is built with to this directory")
)

func main() {
	flag.Parse()
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	if *races != "" {
		_, err := overlay(root, *races, "", "")
		return err
	}
	chosen, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	all, err := bugs()
	if err != nil {
		return err
	}
	var list []bug
	for i, b := range all {
		if _, err := b.apply(root); err != nil {
			return err
		}
		if i%*every == 0 && chosen.MatchString(b.rule) {
			list = append(list, b)
		}
	}
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	return testAll(ctx, root, dir, list)
}

// testAll prints what finds each bug. The error names the bugs that nothing finds.
func testAll(ctx context.Context, root, dir string, list []bug) error {
	fmt.Printf("| bug: the rule that is broken | file | found by |\n|---|---|---|\n")
	var (
		mu        sync.Mutex
		errs      []error
		simulated int // how many the simulation has found, of all that it includes
		all       int
		workers   sync.WaitGroup
	)
	next := make(chan bug, len(list))
	for _, b := range list {
		next <- b
	}
	close(next)
	for n := range runtime.GOMAXPROCS(0) { // a simulation has one goroutine
		workers.Go(func() {
			for b := range next {
				found, err := b.find(ctx, root, filepath.Join(dir, strconv.Itoa(n)))
				if err == nil && found == "" {
					found, err = "**nothing**", errors.New("found by nothing")
				}
				mu.Lock()
				if err != nil {
					errs = append(errs, fmt.Errorf("%s: %w", b.rule, err))
				} else if strings.HasPrefix(found, "seed") {
					simulated++
				}
				if b.isSimulated() {
					all++
				}
				fmt.Printf("| %s | %s | %s |\n", b.rule, b.file, found)
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	fmt.Printf("\nThe simulation found %d of the %d bugs in what it includes (%d%%) within %d seeds.\n", simulated, all, 100*simulated/max(all, 1), *seeds)
	return errors.Join(errs...)
}

// find returns what finds the bug, or "".
func (b *bug) find(ctx context.Context, root, dir string) (string, error) {
	content, err := b.apply(root)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	overlay, err := overlay(root, dir, b.file, content)
	if err != nil {
		return "", err
	}
	if !b.isSimulated() {
		return b.runTests(ctx, overlay), nil
	}
	binary := filepath.Join(dir, "sim.test")
	if out, err := exec.CommandContext(ctx, "go", "test", "-c", "-overlay", overlay, "-o", binary, "./internal/engine/internal/drain").CombinedOutput(); err != nil {
		return "", fmt.Errorf("doesn't compile: %w\n%s", err, out)
	}
	if b.seed != "" {
		if _, err := simulate(ctx, binary, "-sim.seed="+b.seed); err != nil {
			return "seed " + b.seed, nil //nolint:nilerr // the failure is what was looked for
		}
	}
	out, err := simulate(ctx, binary, fmt.Sprint("-sim.seeds=", *seeds))
	switch seed := firstSeed(out); {
	case err == nil:
		return b.runTests(ctx, overlay), nil
	case seed == "":
		return "seed (the simulation ended abnormally)", nil
	default:
		return "seed " + seed, nil
	}
}

func simulate(ctx context.Context, binary, which string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	return exec.CommandContext(ctx, binary, "-test.run=^TestSimulation$", "-test.timeout=5m", "-sim.races", which).CombinedOutput()
}

var (
	seedLine = regexp.MustCompile(`(?m)seed (\d+): `)
	failLine = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
)

// firstSeed returns the smallest seed that failed. Several can fail at the same time.
func firstSeed(out []byte) (first string) {
	least := ^uint64(0)
	for _, match := range seedLine.FindAllSubmatch(out, -1) {
		if seed, err := strconv.ParseUint(string(match[1]), 10, 64); err == nil && seed < least {
			least, first = seed, string(match[1])
		}
	}
	return first
}

// packages have the tests that can find a bug. The simulation includes only the first ones.
var packages = []string{
	"ringbuf", "internal/tally", "internal/engine/internal/checkpoint", "internal/engine/internal/drain",
	"internal/process", "internal/engine/internal/discover", "internal/engine", "receiver/nixlshmreceiver",
}

// isSimulated reports whether the simulation includes the code of the bug, and what shows it.
func (b *bug) isSimulated() bool {
	return b.outside == "" && slices.Index(packages, path.Dir(b.file)) < 4
}

// runTests returns the test that finds the bug, or "": the named one, or else the first one
// that fails.
func (b *bug) runTests(ctx context.Context, overlay string) string {
	name, at := cmp.Or(b.test, ".*"), slices.Index(packages, path.Dir(b.file))
	run := func(dir string) string {
		out, err := exec.CommandContext(ctx, "go", "test", "-C", dir, "-vet=off", "-failfast", "-overlay", overlay, // of any module
			"-run=^("+name+")$", "-skip=^TestSimulation$", ".").CombinedOutput()
		match := failLine.FindSubmatch(out)
		switch {
		case err == nil, bytes.Contains(out, []byte("[build failed]")):
			return ""
		case match == nil:
			return "tests of " + dir // a panic
		default:
			return string(match[1]) + " of " + dir
		}
	}
	for _, dir := range packages[at:] {
		if found := run(dir); found != "" {
			return found
		}
	}
	return ""
}
