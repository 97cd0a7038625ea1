// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package built runs tests with programs of this repository.
package built

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Absolute paths, which Main sets.
var (
	Collector string // of OTELCOL_NIXL
	Nixlring  string
	Root      string // of the repository
)

// Main runs the tests of a package that is two directories below the root, and exits. Without a
// built Collector, it skips them, unless CI is true. A target of make builds one.
func Main(m *testing.M, target string) {
	code, err := run(m, target)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M, target string) (code int, err error) {
	Collector = os.Getenv("OTELCOL_NIXL")
	if Collector == "" {
		why := "OTELCOL_NIXL doesn't name a built Collector; `make " + target + "` builds one and runs these tests"
		if os.Getenv("CI") == "true" {
			return 1, errors.New(why)
		}
		fmt.Println("skipped:", why)
		return 0, nil
	}
	if _, err := os.Stat(Collector); err != nil || !filepath.IsAbs(Collector) {
		return 1, fmt.Errorf("OTELCOL_NIXL=%s is not the absolute path of a program", Collector)
	}
	if Root, err = filepath.Abs("../.."); err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "nixl-test-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	Nixlring = filepath.Join(dir, "nixlring")
	if err := Program(Nixlring, "cmd/nixlring"); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// Program builds the program in a directory of the repository.
func Program(to, dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "build", "-o", to, ".")
	cmd.Dir = filepath.Join(Root, dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", dir, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Path returns the path of a program in an environment variable, or skips the test.
func Path(tb testing.TB, variable string) string {
	tb.Helper()
	path := os.Getenv(variable)
	if path == "" {
		tb.Skipf("%s isn't set to the path of a program; `make dashboards-test` sets it", variable)
	}
	return path
}
