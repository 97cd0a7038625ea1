// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/test/chaos/internal/agent"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
)

func TestMain(m *testing.M) {
	agent.Main() // doesn't return in an agent's process
	built.Main(m, "chaos")
}

// number returns the value of an environment variable, or a default.
func number(t *testing.T, variable string, byDefault uint64) uint64 {
	t.Helper()
	return setting(t, variable, byDefault, func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) })
}

// duration returns the value of an environment variable, or a default.
func duration(t *testing.T, variable string, byDefault time.Duration) time.Duration {
	t.Helper()
	return setting(t, variable, byDefault, time.ParseDuration)
}

func setting[T any](t *testing.T, variable string, byDefault T, parse func(string) (T, error)) T {
	t.Helper()
	s := os.Getenv(variable)
	if s == "" {
		return byDefault
	}
	v, err := parse(s)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return v
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
