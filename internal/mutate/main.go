// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Mutate measures what the simulation and the tests find: it applies bugs to the core, one
// at a time, and runs the simulation with each. A bug is an exact edit, derived from a rule
// in ARCHITECTURE.md or in a comment: the rule is deleted, inverted, off by one, or applied
// too late. If the simulation doesn't find it, the tests of the packages run. Run it with
// `make mutate`, in the root directory.
//
// An edit whose text isn't in its file exactly once is an error: adjust the list when you
// change the code.
package main

import (
	"bytes"
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

// mutation is a bug.
type mutation struct {
	file string // relative to the root directory
	rule string // that the bug breaks
	old  string // occurs exactly once
	new  string
}

func mutations() []mutation {
	return slices.Concat(ringMutations, observerMutations, checkpointMutations, ownerMutations)
}

var (
	seeds = flag.Uint64("seeds", 20000, "number of seeds to simulate for each bug")
	every = flag.Int("every", 1, "apply only every nth bug")
	part  = flag.Int("part", 0, "of each n bugs, apply the one with this index")
	only  = flag.String("only", "", "apply only bugs whose rules match this regular expression")
	tests = flag.Bool("tests", true, "run the packages' tests if the simulation doesn't find a bug")
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
	for _, m := range mutations() {
		if _, err := m.apply(root); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	chosen, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	var list []mutation
	for i, m := range mutations() {
		if i%*every == *part && chosen.MatchString(m.rule) {
			list = append(list, m)
		}
	}
	fmt.Printf("| bug: the rule that is broken | file | found by |\n|---|---|---|\n")
	var mu sync.Mutex
	total, simulated, next := len(list), 0, 0
	var errs []error
	var workers sync.WaitGroup
	for n := range runtime.GOMAXPROCS(0) { // a simulation has one goroutine
		workers.Go(func() {
			for {
				mu.Lock()
				at := next
				next++
				mu.Unlock()
				if at >= total {
					return
				}
				m := list[at]
				found, err := m.test(ctx, root, filepath.Join(dir, strconv.Itoa(n)))
				mu.Lock()
				switch {
				case err != nil:
					errs = append(errs, fmt.Errorf("%s: %w", m.rule, err))
					found = "error"
				case strings.HasPrefix(found, "seed"):
					simulated++
				case found == "":
					errs = append(errs, fmt.Errorf("%s: found by nothing", m.rule))
					found = "**nothing**"
				}
				fmt.Printf("| %s | %s | %s |\n", m.rule, m.file, found)
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	fmt.Printf("\nThe simulation found %d of %d bugs (%d%%) within %d seeds.\n", simulated, total, 100*simulated/max(total, 1), *seeds)
	return errors.Join(errs...)
}

// apply returns the content of the file with the bug.
func (m *mutation) apply(root string) (string, error) {
	b, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(b), m.old); n != 1 {
		return "", fmt.Errorf("the text to edit occurs %d times in %s; adjust the bug %q:\n%s", n, m.file, m.rule, m.old)
	}
	return strings.Replace(string(b), m.old, m.new, 1), nil
}

// test returns what finds the bug, or "".
func (m *mutation) test(ctx context.Context, root, dir string) (string, error) {
	content, err := m.apply(root)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	overlay, err := overlay(root, dir, m.file, content)
	if err != nil {
		return "", err
	}
	if *seeds == 0 {
		return m.runTests(ctx, overlay), nil
	}
	binary := filepath.Join(dir, "sim.test")
	if out, err := exec.CommandContext(ctx, "go", "test", "-c", "-overlay", overlay, "-o", binary, "./internal/engine/internal/drain").CombinedOutput(); err != nil {
		return "", fmt.Errorf("doesn't compile: %w\n%s", err, out)
	}
	if seed := seedOf[m.rule]; seed != 0 {
		if _, err := simulate(ctx, binary, fmt.Sprint("-sim.seed=", seed)); err != nil {
			return fmt.Sprint("seed ", seed), nil //nolint:nilerr // the failure is what was looked for
		}
	}
	out, err := simulate(ctx, binary, fmt.Sprint("-sim.seeds=", *seeds))
	switch seed := firstSeed(out); {
	case err == nil && !*tests:
		return "", nil
	case err == nil:
		return m.runTests(ctx, overlay), nil
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

// packages have the tests that can find a bug.
var packages = []string{
	"ringbuf", "internal/engine/internal/checkpoint", "internal/engine/internal/drain", "internal/engine",
}

// runTests returns the test that finds the bug, or "": the one in foundBy, or else the first one
// that fails.
func (m *mutation) runTests(ctx context.Context, overlay string) string {
	name, at := foundBy[m.rule], slices.Index(packages, path.Dir(m.file))
	run := func(dir string) string {
		out, err := exec.CommandContext(ctx, "go", "test", "-vet=off", "-failfast", "-overlay", overlay,
			"-run=^("+name+")$", "-skip=^TestSimulation$", "./"+dir).CombinedOutput()
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
	if name == "" {
		name = ".*"
	}
	for _, dir := range packages[at:] {
		if found := run(dir); found != "" {
			return found
		}
	}
	return ""
}
