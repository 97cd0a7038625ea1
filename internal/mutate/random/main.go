// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Command random applies random bugs, one at a time, to packages of this repository, and
// prints those that no test finds, and a table. A missed bug shows a missing test. It runs
// in the root of the repository, which must not change meanwhile:
//
//	go run ./internal/mutate/random -n=30 -seed=1 bridge/session internal/tally
//
// A bug is judged by the tests of its package, in short mode. With -importers, and for a
// package without tests, it is then judged by those of all packages that import it. Mutants
// that don't compile don't count, and neither do those in equivalent.txt. With -tests, a table
// shows which tests find nothing that others don't: a test may go if it is superfluous among
// some hundred mutants.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

// equivalents lists mutants that behave like the original. Each line has the file, the
// line before and after, and the reason, separated by tabs.
//
//go:embed equivalent.txt
var equivalents string

func main() {
	n := flag.Int("n", 30, "number of mutants of each package")
	seed := flag.Uint64("seed", 1, "of the random choice")
	importers := flag.Bool("importers", false, "run the tests of packages that import it, too")
	tests := flag.Bool("tests", false, "print what each test finds")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, flag.Args(), *n, *seed, *importers, *tests); err != nil {
		fmt.Fprintln(os.Stderr, "random:", err)
		os.Exit(1)
	}
}

// mutant is a mutation of a package.
type mutant struct {
	mutation

	src []byte
}

// goPackage is a part of what go list prints.
type goPackage struct {
	Dir, ImportPath                    string
	GoFiles                            []string
	Imports, TestImports, XTestImports []string
	TestGoFiles, XTestGoFiles          []string
	Module                             struct{ Dir string }
}

// imports reports whether the package or one of its tests imports another one.
func (p goPackage) imports(path string) bool {
	return slices.Contains(slices.Concat(p.Imports, p.TestImports, p.XTestImports), path)
}

// run prints the missed mutants of the packages in directories, and a table. Without
// directories, it takes all packages.
func run(ctx context.Context, out io.Writer, dirs []string, n int, seed uint64, importers, tests bool) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	all, err := packages(ctx, root)
	if err != nil {
		return err
	}
	targets := all
	if len(dirs) > 0 {
		targets = nil
	}
	for _, dir := range dirs {
		i := slices.IndexFunc(all, func(p goPackage) bool { return p.Dir == filepath.Join(root, filepath.FromSlash(dir)) })
		if i < 0 {
			return fmt.Errorf("no package in %s; specify a directory, such as bridge/session", dir)
		}
		targets = append(targets, all[i])
	}
	scratch, err := os.MkdirTemp("", "mutate-random")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	var table strings.Builder
	table.WriteString("\n| package | found | by its own tests | mutants |\n|---|---|---|---|\n")
	for _, p := range targets {
		mutants, err := mutantsOf(root, p)
		if err != nil {
			return err
		}
		if len(mutants) == 0 {
			continue
		}
		j, err := newJudge(ctx, root, scratch, p, all, importers, tests)
		if err != nil {
			return err
		}
		counts, err := j.judgeSome(ctx, out, mutants, n, rand.New(rand.NewPCG(seed, 0)))
		if err != nil {
			return err
		}
		if j.finders != nil {
			j.finders.print(out)
		}
		judged := counts[foundByPackage] + counts[foundByImporter] + counts[missed]
		fmt.Fprintf(&table, "| %s | %d%% | %d | %d |\n", strings.TrimPrefix(p.Dir, root+string(filepath.Separator)),
			100*(judged-counts[missed])/max(judged, 1), counts[foundByPackage], judged)
	}
	_, err = io.WriteString(out, table.String())
	return err
}

// judgeSome judges n mutants that compile, and prints those that are missed.
func (j *judge) judgeSome(ctx context.Context, out io.Writer, mutants []mutant, n int, r *rand.Rand) (counts [invalid + 1]int, err error) {
	r.Shuffle(len(mutants), func(i, j int) { mutants[i], mutants[j] = mutants[j], mutants[i] })
	for _, m := range mutants {
		if counts[foundByPackage]+counts[foundByImporter]+counts[missed] == n {
			break
		}
		v, err := j.judge(ctx, m)
		if err != nil {
			return counts, err
		}
		counts[v]++
		if v == missed {
			line, before, after := m.lines(m.src)
			fmt.Fprintf(out, "%s:%d: %s\n- %s\n+ %s\n", m.file, line, m.what, before, after)
		}
	}
	return counts, nil
}

// mutantsOf returns the mutants of a package that may behave differently.
func mutantsOf(root string, p goPackage) (mutants []mutant, err error) {
	known := equivalentMutants(equivalents)
	for _, name := range p.GoFiles {
		src, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return nil, err
		}
		rel, err := filepath.Rel(root, filepath.Join(p.Dir, name))
		if err != nil {
			return nil, err
		}
		list, err := mutationsOf(filepath.ToSlash(rel), src)
		if err != nil {
			return nil, err
		}
		for _, m := range list {
			if _, before, after := m.lines(src); !known[[3]string{m.file, before, after}] {
				mutants = append(mutants, mutant{m, src})
			}
		}
	}
	return mutants, nil
}

// equivalentMutants parses the list of equivalent mutants.
func equivalentMutants(text string) map[[3]string]bool {
	known := make(map[[3]string]bool)
	for line := range strings.Lines(text) {
		if f := strings.Split(line, "\t"); len(f) == 4 && !strings.HasPrefix(line, "#") {
			known[[3]string(f[:3])] = true
		}
	}
	return known
}

// packages returns the packages of all modules.
func packages(ctx context.Context, root string) ([]goPackage, error) {
	modules, err := exec.CommandContext(ctx, "git", "-C", root, "ls-files", "go.mod", "*/go.mod").Output()
	if err != nil {
		return nil, fmt.Errorf("list modules: %w", err)
	}
	var all []goPackage
	for path := range strings.FieldsSeq(string(modules)) {
		if slices.Contains([]string{"internal/tools/go.mod", "test/backends/go.mod"}, path) {
			continue // they only pin tools
		}
		list := exec.CommandContext(ctx, "go", "list", "-json", "./...")
		list.Dir = filepath.Join(root, filepath.Dir(path))
		text, err := list.Output()
		if err != nil {
			return nil, fmt.Errorf("list packages of %s: %w", path, err)
		}
		for d := json.NewDecoder(strings.NewReader(string(text))); ; {
			var p goPackage
			if err := d.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			all = append(all, p)
		}
	}
	return all, nil
}
