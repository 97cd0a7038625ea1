// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// mutant is a mutation of a package.
type mutant struct {
	mutation

	src []byte
	pkg goPackage
}

type verdict int

const (
	missed verdict = iota
	foundByPackage
	foundByImporter
	invalid // doesn't compile
)

// judge runs the tests of mutants.
type judge struct {
	root, scratch string
	all           []goPackage
}

// judge returns what finds a mutant. It returns an error only if ctx is done, or if files
// can't be written.
func (j judge) judge(ctx context.Context, m mutant) (verdict, error) {
	mutated := filepath.Join(j.scratch, "mutated.go")
	if err := os.WriteFile(mutated, m.apply(m.src), 0o600); err != nil {
		return 0, err
	}
	replace := map[string]string{filepath.Join(j.root, filepath.FromSlash(m.file)): mutated}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return 0, err
	}
	if err := os.WriteFile(j.overlay(), overlay, 0o600); err != nil {
		return 0, err
	}
	if !passes(ctx, m.pkg.Module.Dir, "build", "-overlay="+j.overlay(), "-o", os.DevNull, m.pkg.ImportPath) {
		return invalid, ctx.Err()
	}
	if m.pkg.tested() && !j.tests(ctx, m.pkg) {
		return foundByPackage, ctx.Err()
	}
	for _, p := range j.all {
		if p.tested() && p.imports(m.pkg.ImportPath) && !j.tests(ctx, p) {
			return foundByImporter, ctx.Err()
		}
	}
	return missed, ctx.Err()
}

func (j judge) overlay() string { return filepath.Join(j.scratch, "overlay.json") }

// tests reports whether the tests of a package pass, or fail without the mutation, too.
func (j judge) tests(ctx context.Context, p goPackage) bool {
	return passes(ctx, p.Module.Dir, "test", "-overlay="+j.overlay(), "-vet=off", "-timeout=3m", p.ImportPath) ||
		!passes(ctx, p.Module.Dir, "test", "-vet=off", p.ImportPath)
}

func passes(ctx context.Context, module string, args ...string) bool {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "GOWORK=off")
	text, err := cmd.CombinedOutput()
	return err == nil && !strings.Contains(string(text), "FAIL")
}
