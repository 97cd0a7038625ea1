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

func TestDirPrefersTheFirstName(t *testing.T) {
	for _, tt := range []struct {
		name string
		vars map[string]string
		want string
	}{
		{"nothing", nil, "/tmp"},
		{"empty", map[string]string{"NIXL_TELEMETRY_DIR": ""}, "/tmp"},
		{"directory", map[string]string{"NIXL_TELEMETRY_DIR": "/run/nixl"}, "/run/nixl"},
		{"second name", map[string]string{"NIXL_TELEMETRY_EXPORTER_OUTPUT_PATH": "/run/other"}, "/run/other"},
		{"both", map[string]string{
			"NIXL_TELEMETRY_DIR":                  "/run/nixl",
			"NIXL_TELEMETRY_EXPORTER_OUTPUT_PATH": "/run/other",
		}, "/run/nixl"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := env(tt.vars).Dir(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestBufferSizeMustBeAPowerOfTwo(t *testing.T) {
	for value, want := range map[string]int{
		"": 4096, "2": 2, "65536": 65536, "4194304": ringbuf.MaxCapacity,
		"0": 0, "1": 0, "12": 0, "-4": 0, "many": 0, "8388608": 0, "9999999999": 0, "99999999999999999999": 0,
	} {
		got, err := env(map[string]string{process.EnvBufferSize: value}).BufferSize()
		check(t, value, got, want, err, process.EnvBufferSize)
	}
}

func TestRunIntervalMustBeWholeMilliseconds(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"": 100 * time.Millisecond, "10": 10 * time.Millisecond, "60000": time.Minute,
		"0": 0, "-5": 0, "1.5": 0, "100ms": 0, "9223372036854775807": 0,
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

func TestNilEnvHasDefaults(t *testing.T) {
	if got := process.Env(nil).Dir(); got != "/tmp" {
		t.Errorf("got %q", got)
	}
}

func TestExporterDeterminesRingAndStoreDirectory(t *testing.T) {
	for _, tt := range []struct {
		name  string
		vars  map[string]string
		ring  bool
		store string
	}{
		{"nothing", nil, false, ""},
		{"enabled", map[string]string{process.EnvEnable: "y"}, true, ""},
		{"enabled in another way", map[string]string{process.EnvEnable: "True"}, true, ""},
		{"disabled", map[string]string{process.EnvEnable: "n", process.EnvExporter: "BUFFER"}, false, ""},
		{"neither", map[string]string{process.EnvEnable: "maybe"}, false, ""},
		{"empty exporter", map[string]string{process.EnvEnable: "1", process.EnvExporter: ""}, true, ""},
		{"ring", map[string]string{process.EnvEnable: "enable", process.EnvExporter: "BUFFER"}, true, ""},
		{"prometheus", map[string]string{process.EnvEnable: "on", process.EnvExporter: "prometheus"}, false, ""},
		{"store", map[string]string{
			process.EnvEnable: "yes", process.EnvExporter: "prometheus_mp", process.EnvMultiprocDir: "/dev/shm/nixl",
		}, false, "/dev/shm/nixl"},
		{"ring, and a directory for stores", map[string]string{
			process.EnvEnable: "yes", process.EnvMultiprocDir: "/dev/shm/nixl",
		}, true, ""},
		{"store, disabled", map[string]string{
			process.EnvEnable: "no", process.EnvExporter: "prometheus_mp", process.EnvMultiprocDir: "/dev/shm/nixl",
		}, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := env(tt.vars)
			if e.WritesRing() != tt.ring || e.StoreDir() != tt.store {
				t.Errorf("ring: %v, store: %q", e.WritesRing(), e.StoreDir())
			}
		})
	}
}
