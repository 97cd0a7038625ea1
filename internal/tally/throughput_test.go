// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

func TestThroughputIsExact(t *testing.T) {
	edges := []uint64{
		0, 1, 2, 3, 999_999, 1_000_000, 1_000_001, 1<<exactBits - 1, 1 << exactBits, 1<<exactBits + 1,
		1<<53 - 1, 1 << 53, 1<<53 + 1, math.MaxInt64, math.MaxUint64 - 1, math.MaxUint64,
	}
	check := func(bytes, micros uint64) {
		t.Helper()
		want := new(big.Int).Mul(new(big.Int).SetUint64(bytes), big.NewInt(1_000_000))
		if want.Quo(want, new(big.Int).SetUint64(max(micros, 1))); !want.IsUint64() {
			want.SetUint64(math.MaxUint64)
		}
		if got := semconv.Throughput(bytes, micros); got != want.Uint64() {
			t.Fatalf("%d bytes in %d µs are %d bytes/s, want %v", bytes, micros, got, want)
		}
		if (bytes|micros)>>exactBits != 0 || micros == 0 {
			return
		}
		if got := uint64(quickThroughput(bytes, micros)); got != want.Uint64() {
			t.Fatalf("quick: %d bytes in %d µs are %d bytes/s, want %v", bytes, micros, got, want)
		}
	}
	for _, bytes := range edges {
		for _, micros := range edges {
			check(bytes, micros)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		bytes, micros := random.Uint64()>>random.IntN(64), random.Uint64()>>random.IntN(64)
		check(bytes, micros)
		// Quotients just below an integer are the most sensitive to rounding.
		if n := random.Uint64N(1 << 20); n > 0 && micros > 0 && micros < 1<<53/n {
			check((n*micros-1)/microsPerSecond, micros)
		}
	}
}

func TestThroughputIsNotMeasuredWithoutItsHistogram(t *testing.T) {
	a := NewAgent(shapeOf(t, Config{Throughput: HistogramConfig{Kind: NoHistogram}}))
	feed(t, a, ringbuf.V4, transfersOf(5, 5), 4, 2) // the second one in two batches
	if n := a.Throughput(Receive).Count(); n != 0 || a.Size(Receive).Count() != 2 {
		t.Errorf("%d throughputs, %d sizes", n, a.Size(Receive).Count())
	}
}
