// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package units

import (
	"math"
	"strings"
	"testing"
)

func TestNumbersHaveThreeDigitsAndASuitableUnit(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{Throughput(0), "0 B/s"},
		{Throughput(12), "12.0 B/s"},
		{Throughput(999.4), "999 B/s"},
		{Throughput(999.6), "1.00 kB/s"},
		{Throughput(12.34e9), "12.3 GB/s"},
		{Throughput(2e21), "2000 EB/s"},
		{Memory(79 << 30), "79.0 GiB"},
		{Memory(1 << 40), "1.00 TiB"},
		{Bytes(999), "999 B"},
		{Bytes(132_896_923_648), "133 GB"},
		{Duration(math.NaN()), ""},
		{Duration(1.234e-6), "1.23 µs"},
		{Duration(980e-6), "980 µs"},
		{Duration(2.31e-3), "2.31 ms"},
		{Duration(12.3), "12.3 s"},
		{Duration(100), "100 s"},
		{Bare("500 µs"), "500 µs"},
		{Bare("25.0 µs"), "25 µs"},
		{Bare("1.00 ms"), "1 ms"},
		{Bare("2.50 ms"), "2.5 ms"},
		{Rate(0), "0"},
		{Rate(0.02), "0.02"},
		{Rate(1.25), "1.2"},
		{Rate(9.96), "10"},
		{Rate(12345), "12,345"},
		{Count(1234567), "1,234,567"},
		{Age(-1), "0 s"},
		{Age(90e9), "90 s"},
		{Age(600e9), "10 m"},
		{Age(3 * 3600e9), "3 h"},
		{Age(72 * 3600e9), "3 d"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}

func TestWrapBreaksLinesOnlyAtSpaces(t *testing.T) {
	got := strings.Join(Wrap("nixlring read --consume /run/nixl/decode-0 é é é", 16), "|")
	if want := "nixlring read|--consume|/run/nixl/decode-0|é é é"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := len(Wrap("12345678 1234567", 16)); got != 1 {
		t.Errorf("%d lines", got)
	}
}
