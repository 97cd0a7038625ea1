// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/test/chaos/internal/agent"
)

// The absolute paths of the programs under test, and of the repository.
var collectorBin, nixlringBin, root string

func TestMain(m *testing.M) {
	agent.Main() // doesn't return in an agent's process
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	collectorBin = os.Getenv("OTELCOL_NIXL")
	if collectorBin == "" {
		const why = "OTELCOL_NIXL doesn't name a built Collector; `make chaos` builds one and runs these tests"
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
	dir, err := os.MkdirTemp("", "nixl-chaos-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	nixlringBin = filepath.Join(dir, "nixlring")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "build", "-o", nixlringBin, ".")
	cmd.Dir = filepath.Join(root, "cmd", "nixlring")
	if out, err := cmd.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("build nixlring: %w\n%s", err, out)
	}
	return m.Run(), nil
}

// number returns the value of an environment variable, or a default.
func number(t *testing.T, variable string, byDefault uint64) uint64 {
	t.Helper()
	s := os.Getenv(variable)
	if s == "" {
		return byDefault
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

func duration(t *testing.T, variable string, byDefault time.Duration) time.Duration {
	t.Helper()
	s := os.Getenv(variable)
	if s == "" {
		return byDefault
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return d
}

// chance returns a source of random numbers and its seed, which it logs.
func chance(t *testing.T) (*rand.Rand, uint64) {
	t.Helper()
	seed := number(t, "CHAOS_SEED", rand.Uint64N(1<<32))
	t.Logf("CHAOS_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0)), seed
}

// upTo returns a random duration below most.
func upTo(rng *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(most)))
}

// pick returns a random value.
func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }
