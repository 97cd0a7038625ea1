// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Command random applies random bugs, one at a time, to the packages of this repository,
// and prints those that no test finds. A missed bug shows a missing test. It runs in the
// root of the repository, which must not change meanwhile:
//
//	go run ./internal/mutate/random -pkg=bridge/session -n=30 -seed=1
//
// A bug is judged by the tests of its package, and then by those of all packages that
// import it, with the flags that CI uses, apart from the race detector. Mutants that don't
// compile don't count, and neither do those in equivalent.txt.
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
	pkg := flag.String("pkg", "", "`directory` of the package (default: all packages)")
	n := flag.Int("n", 30, "number of mutants")
	seed := flag.Uint64("seed", 1, "of the random choice")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *pkg, *n, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "random:", err)
		os.Exit(1)
	}
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

func (p goPackage) tested() bool { return len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 }

func run(ctx context.Context, out io.Writer, pkg string, n int, seed uint64) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	all, err := packages(ctx, root)
	if err != nil {
		return err
	}
	targets := all
	if pkg != "" {
		dir := filepath.Join(root, filepath.FromSlash(pkg))
		targets = slices.DeleteFunc(slices.Clone(all), func(p goPackage) bool { return p.Dir != dir })
		if len(targets) == 0 {
			return fmt.Errorf("-pkg %s: no such package; specify its directory, such as bridge/session", pkg)
		}
	}
	mutants, err := mutantsOf(root, targets)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(seed, 0))
	r.Shuffle(len(mutants), func(i, j int) { mutants[i], mutants[j] = mutants[j], mutants[i] })

	scratch, err := os.MkdirTemp("", "mutate-random")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	j := judge{root, scratch, all}
	counts := map[verdict]int{}
	for _, m := range mutants {
		if counts[foundByPackage]+counts[foundByImporter]+counts[missed] == n {
			break
		}
		v, err := j.judge(ctx, m)
		if err != nil {
			return err
		}
		counts[v]++
		if v == missed {
			line, before, after := m.lines(m.src)
			fmt.Fprintf(out, "%s:%d: %s\n- %s\n+ %s\n", m.file, line, m.what, before, after)
		}
	}
	judged := counts[foundByPackage] + counts[foundByImporter] + counts[missed]
	fmt.Fprintf(out, "%d of %d found: %d by the tests of the package, %d by those of packages that import it; %d others didn't compile (seed %d)\n",
		judged-counts[missed], judged, counts[foundByPackage], counts[foundByImporter], counts[invalid], seed)
	return nil
}

// mutantsOf returns the mutants of packages that may behave differently.
func mutantsOf(root string, targets []goPackage) (mutants []mutant, err error) {
	known := equivalentMutants(equivalents)
	for _, p := range targets {
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
				_, before, after := m.lines(src)
				if !known[[3]string{m.file, before, after}] {
					mutants = append(mutants, mutant{m, src, p})
				}
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
