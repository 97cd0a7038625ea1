// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

func bigOf(s Sum) *big.Int {
	v := new(big.Int).SetUint64(s.Hi)
	return v.Add(v.Lsh(v, 64), new(big.Int).SetUint64(s.Lo))
}

func TestSumMatchesBigInt(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	word := func() uint64 {
		switch random.IntN(4) {
		case 0:
			return 0
		case 1:
			return math.MaxUint64 - random.Uint64N(3)
		default:
			return random.Uint64() >> random.IntN(64)
		}
	}
	for range 20_000 {
		s, other, v := Sum{word() >> 1, word()}, Sum{word() >> 1, word()}, word()
		want := bigOf(s)

		f, _ := new(big.Float).SetInt(want).Float64()
		if got := s.Float64(); got != f {
			t.Fatalf("%v is %v, want %v", want, got, f)
		}
		if got := s.Int64(); got != clampBig(want) {
			t.Fatalf("%v is %v, want %v", want, got, clampBig(want))
		}
		if got, want := s.less(other), clampBig(new(big.Int).Sub(want, bigOf(other))); got != want {
			t.Fatalf("%v less %v is %v, want %v", s, other, got, want)
		}
		added := s
		added.Add(v)
		if want := new(big.Int).Add(want, new(big.Int).SetUint64(v)); bigOf(added).Cmp(want) != 0 {
			t.Fatalf("%v and %v is %v, want %v", s, v, bigOf(added), want)
		}
		added.sub(s)
		if want := (Sum{Lo: v}); added != want {
			t.Fatalf("got %v, want %v", added, want)
		}
	}
	if got := (Sum{Lo: math.MaxInt64}).less(Sum{Hi: 1}); got != math.MinInt64 { // one less than the range
		t.Errorf("the difference is %d, want the smallest int64", got)
	}
}

// A tie rounds to even, unless a lower bit is set.
func TestSumRoundsOnce(t *testing.T) {
	for _, tt := range []struct {
		s    Sum
		want float64
	}{
		{Sum{1, 1 << 11}, math.Ldexp(1, 64)},
		{Sum{1, 1<<11 + 1}, math.Ldexp(1, 64) + 1<<12},
		{Sum{1, 3 << 11}, math.Ldexp(1, 64) + 1<<13},
		{Sum{1 << 63, 1}, math.Ldexp(1, 127)},
		{Sum{math.MaxUint64, math.MaxUint64}, math.Ldexp(1, 128)},
	} {
		if got := tt.s.Float64(); got != tt.want {
			t.Errorf("%v is %v, want %v", tt.s, got, tt.want)
		}
	}
}

func clampBig(v *big.Int) int64 {
	switch {
	case v.IsInt64():
		return v.Int64()
	case v.Sign() < 0:
		return math.MinInt64
	default:
		return math.MaxInt64
	}
}
