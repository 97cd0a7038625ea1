// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

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

// The absolute paths of the programs under test, and of the repository. The last
// three are empty unless `make scale-test` runs the tests.
var collectorBin, nixlringBin, root, fullBin, kfakeBin, victoriaLogsBin string

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	collectorBin, fullBin, kfakeBin = os.Getenv("OTELCOL_NIXL"), os.Getenv("OTELCOL_NIXL_FULL"), os.Getenv("KFAKE")
	victoriaLogsBin = os.Getenv("VICTORIA_LOGS")
	if collectorBin == "" {
		const why = "OTELCOL_NIXL doesn't name a built Collector; `make e2e` builds one and runs these tests"
		if os.Getenv("CI") == "true" {
			return 1, errors.New(why)
		}
		fmt.Println("skipped:", why)
		return 0, nil
	}
	if _, err := os.Stat(collectorBin); err != nil || !filepath.IsAbs(collectorBin) {
		return 1, fmt.Errorf("OTELCOL_NIXL=%s is not the absolute path of a program", collectorBin)
	}
	if root, err = filepath.Abs("../.."); err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "nixl-e2e-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	nixlringBin = filepath.Join(dir, "nixlring")
	if err := build(nixlringBin, "cmd/nixlring"); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// build builds the program in a directory of the repository, in any of its modules.
func build(to, dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "build", "-o", to, ".")
	cmd.Dir = filepath.Join(root, dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", dir, err, strings.TrimSpace(string(out)))
	}
	return nil
}
