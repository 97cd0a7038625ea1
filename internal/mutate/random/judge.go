// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"time"
)

type verdict int

const (
	missed verdict = iota
	foundByPackage
	foundByImporter
	invalid // doesn't compile
)

// suite is the tests of a package.
type suite struct {
	goPackage

	limit time.Duration // of a run
}

// judge runs the tests that may find the mutants of a package.
type judge struct {
	root, scratch string
	pkg           goPackage
	own           []suite
	// Their tests run only if own don't find a mutant.
	importers []suite
	// What each of own finds; nil if the first test that fails is enough.
	finders *finders
}

// newJudge runs all tests without a mutation. Those that fail then don't judge.
func newJudge(ctx context.Context, root, scratch string, p goPackage, all []goPackage, importers, tests bool) (*judge, error) {
	j := &judge{root: root, scratch: scratch, pkg: p}
	if err := j.overlay("", nil); err != nil {
		return nil, err
	}
	if s, ok := j.suite(ctx, p); ok {
		j.own = append(j.own, s)
		if tests {
			verbose, _ := j.run(ctx, s, "-test.v")
			j.finders = newFinders(verbose)
		}
	}
	if importers || len(j.own) == 0 {
		for _, importer := range all {
			if !importer.imports(p.ImportPath) {
				continue
			}
			if s, ok := j.suite(ctx, importer); ok {
				j.importers = append(j.importers, s)
			}
		}
	}
	return j, ctx.Err()
}

// suite returns the tests of a package if it has tests that pass.
func (j *judge) suite(ctx context.Context, p goPackage) (suite, bool) {
	if len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
		return suite{}, false
	}
	s := suite{p, 10 * time.Minute}
	if !j.compile(ctx, p) {
		fmt.Fprintf(os.Stderr, "the tests of %s don't compile\n", p.ImportPath)
		return suite{}, false
	}
	start := time.Now()
	if text, ok := j.run(ctx, s, "-test.failfast"); !ok {
		fmt.Fprintf(os.Stderr, "the tests of %s fail without a mutation:\n%s", p.ImportPath, text)
		return suite{}, false
	}
	s.limit = 20*time.Second + 3*time.Since(start) // a mutant may never return
	return s, true
}

// judge returns what finds a mutant. It returns an error only if ctx is done, or if files
// can't be written.
func (j *judge) judge(ctx context.Context, m mutant) (verdict, error) {
	if err := j.overlay(m.file, m.apply(m.src)); err != nil {
		return 0, err
	}
	if len(j.own) == 0 && !j.do(ctx, j.pkg, "build", "-o", os.DevNull) {
		return invalid, ctx.Err()
	}
	for _, s := range j.own {
		if !j.compile(ctx, s.goPackage) {
			return invalid, ctx.Err()
		}
		if j.finders != nil {
			if failed := j.failing(ctx, s); len(failed) > 0 {
				j.finders.add(failed)
				return foundByPackage, ctx.Err()
			}
		} else if _, ok := j.run(ctx, s, "-test.failfast"); !ok {
			return foundByPackage, ctx.Err()
		}
	}
	for _, s := range j.importers {
		if !j.compile(ctx, s.goPackage) {
			return foundByImporter, ctx.Err()
		}
		if _, ok := j.run(ctx, s, "-test.failfast"); !ok {
			return foundByImporter, ctx.Err()
		}
	}
	return missed, ctx.Err()
}

// overlay makes the following builds use src as a file, unless name is empty.
func (j *judge) overlay(name string, src []byte) error {
	replace := map[string]string{}
	if name != "" {
		mutated := filepath.Join(j.scratch, "mutated.go")
		if err := os.WriteFile(mutated, src, 0o600); err != nil {
			return err
		}
		replace[filepath.Join(j.root, filepath.FromSlash(name))] = mutated
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(j.scratch, "overlay.json"), text, 0o600)
}

// program returns where to compile tests, with the name that go test gives them.
func (j *judge) program(p goPackage) string {
	return filepath.Join(j.scratch, path.Base(p.ImportPath)+".test")
}

func (j *judge) compile(ctx context.Context, p goPackage) bool {
	return j.do(ctx, p, "test", "-c", "-vet=off", "-o", j.program(p))
}

// do runs a command of go for a package, and reports whether it succeeds.
func (j *judge) do(ctx context.Context, p goPackage, args ...string) bool {
	cmd := exec.CommandContext(ctx, "go",
		append(args, "-overlay="+filepath.Join(j.scratch, "overlay.json"), "-ldflags=-s -w", p.ImportPath)...)
	cmd.Dir = p.Module.Dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	return cmd.Run() == nil
}

// run runs compiled tests, and reports whether all pass. A mutant that needs a lot of memory
// fails, too.
func (j *judge) run(ctx context.Context, s suite, flags ...string) (text []byte, passed bool) {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", append([]string{
		"-c", `ulimit -v 8000000; exec "$@"`, "bash",
		j.program(s.goPackage), "-test.short", "-test.timeout=" + (s.limit - 10*time.Second).String(),
	}, flags...)...)
	cmd.Dir = s.Dir
	cmd.WaitDelay = time.Second // for its children
	text, err := cmd.CombinedOutput()
	return text, err == nil
}
