// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/process"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func env(vars map[string]string) process.Env {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

func TestDirIsThatOfTheVariable(t *testing.T) {
	for name, tt := range map[string]struct {
		env  process.Env
		want string
	}{
		"no environment": {nil, "/tmp"},
		"not set":        {env(nil), "/tmp"},
		"empty":          {env(map[string]string{process.EnvDir: ""}), "/tmp"},
		"set":            {env(map[string]string{process.EnvDir: "/run/nixl"}), "/run/nixl"},
	} {
		if got := tt.env.Dir(); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

func TestBufferSizeMustBeAPowerOfTwo(t *testing.T) {
	for value, want := range map[string]int{
		"": 4096, "2": 2, "65536": 65536, "262144": ringbuf.MaxCapacity,
		"0": 0, "1": 0, "12": 0, "-4": 0, "many": 0, "8388608": 0, "9999999999": 0, "99999999999999999999": 0,
	} {
		got, err := env(map[string]string{process.EnvBufferSize: value}).BufferSize()
		check(t, value, got, want, err, process.EnvBufferSize)
	}
}

func TestRunIntervalMustBeWholeMilliseconds(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"": 100 * time.Millisecond, "1": time.Millisecond, "60000": time.Minute, "4294967295": 4294967295 * time.Millisecond,
		"0": 0, "-5": 0, "1.5": 0, "100ms": 0, "4294967296": 0,
	} {
		got, err := env(map[string]string{process.EnvRunInterval: value}).RunInterval()
		check(t, value, got, want, err, process.EnvRunInterval)
	}
}

// check expects an error that names the variable and its value if want is 0.
func check[T comparable](t *testing.T, value string, got, want T, err error, variable string) {
	t.Helper()
	var zero T
	if got != want || (err != nil) != (want == zero) {
		t.Errorf("%q: got %v, %v; want %v", value, got, err, want)
	}
	if err != nil && !strings.Contains(err.Error(), variable+"="+value+":") {
		t.Errorf("%q: the error doesn't name the variable: %v", value, err)
	}
}

func TestExporterDeterminesRingAndStoreDirectory(t *testing.T) {
	for _, tt := range []struct {
		enable, exporter, store string
		ring                    bool
		want                    string
	}{
		{"", "", "", false, ""},
		{"y", "", "", true, ""},
		{"True", "", "", true, ""},
		{"n", "BUFFER", "", false, ""},
		{"maybe", "", "", false, ""},
		{"enable", "BUFFER", "", true, ""},
		{"on", "prometheus", "", false, ""},
		{"yes", "prometheus_mp", "/shm", false, "/shm"},
		{"1", "", "/shm", true, ""},
		{"no", "prometheus_mp", "/shm", false, ""},
	} {
		e := env(map[string]string{process.EnvEnable: tt.enable, process.EnvExporter: tt.exporter, process.EnvMultiprocDir: tt.store})
		if e.WritesRing() != tt.ring || e.StoreDir() != tt.want {
			t.Errorf("%+v: ring: %v, store: %q", tt, e.WritesRing(), e.StoreDir())
		}
	}
}
