// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// finders is what the tests of a package find.
type finders struct {
	seconds map[string]string // of each test without a mutation
	mutants [][]string        // the tests that find each mutant
}

var (
	ended = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL): (\S+) \(([\d.]+)s\)`)
	began = regexp.MustCompile(`(?m)^=== (?:RUN|CONT|NAME) +(\S+)`)
)

func newFinders(verbose []byte) *finders {
	f := &finders{seconds: make(map[string]string)}
	for _, m := range ended.FindAllStringSubmatch(string(verbose), -1) {
		f.seconds[m[2]] = m[3]
	}
	deleteParents(f.seconds)
	return f
}

// deleteParents deletes tests with subtests.
func deleteParents[V any](tests map[string]V) {
	for _, name := range slices.Collect(maps.Keys(tests)) {
		for i := strings.LastIndexByte(name, '/'); i >= 0; i = strings.LastIndexByte(name[:i], '/') {
			delete(tests, name[:i])
		}
	}
}

// add adds a mutant. If a test fails without a known subtest, all of its subtests are taken
// for finders.
func (f *finders) add(failed []string) {
	var tests []string
	for _, name := range failed {
		top, _, _ := strings.Cut(name, "/")
		for t := range f.seconds {
			if t == name || f.seconds[name] == "" && strings.HasPrefix(t, top+"/") {
				tests = append(tests, t)
			}
		}
	}
	f.mutants = append(f.mutants, tests)
}

// failing returns the tests and subtests that fail. A panic ends a run, so those that haven't
// ended run again.
func (j *judge) failing(ctx context.Context, s suite) []string {
	failed, skip := make(map[string]bool), make(map[string]bool)
	for start := time.Now(); time.Since(start) < s.limit/2; {
		out, passed := j.run(ctx, s, "-test.v", "-test.skip=^("+strings.Join(slices.Collect(maps.Keys(skip)), "|")+")$")
		text, failures, known := string(out), len(failed), len(skip)
		for _, m := range ended.FindAllStringSubmatch(text, -1) {
			top, _, _ := strings.Cut(m[2], "/")
			skip[top] = true
			if m[1] == "FAIL" {
				failed[m[2]] = true
			}
		}
		if passed || strings.HasSuffix(text, "\nFAIL\n") {
			break
		}
		if last := began.FindAllStringSubmatch(text, -1); last != nil && len(failed) == failures { // another goroutine's panic
			failed[last[len(last)-1][1]] = true
		}
		if len(skip) == known {
			break
		}
	}
	deleteParents(failed)
	return slices.Collect(maps.Keys(failed))
}

// print prints a table of the tests without subtests, and of subtests. All that it calls
// superfluous may go together: others find all mutants that they find.
func (f *finders) print(out io.Writer) {
	finds, alone := make(map[string]int), make(map[string]int)
	for _, tests := range f.mutants {
		for _, t := range tests {
			finds[t]++
			if len(tests) == 1 {
				alone[t]++
			}
		}
	}
	// Those that find little go first, so that few remain.
	names := slices.SortedFunc(maps.Keys(f.seconds), func(a, b string) int {
		return cmp.Or(cmp.Compare(finds[a], finds[b]), cmp.Compare(a, b))
	})
	fmt.Fprint(out, "\n| test | seconds | finds | finds alone | superfluous |\n|---|---|---|---|---|\n")
	gone := make(map[string]bool)
	stays := func(t string) bool { return !gone[t] }
	for _, t := range names {
		gone[t] = true
		gone[t] = !slices.ContainsFunc(f.mutants, func(tests []string) bool { return slices.Contains(tests, t) && !slices.ContainsFunc(tests, stays) })
		fmt.Fprintf(out, "| %s | %s | %d | %d | %s |\n", t, f.seconds[t], finds[t], alone[t], map[bool]string{true: "yes"}[gone[t]])
	}
}
