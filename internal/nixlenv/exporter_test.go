// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlenv_test

import (
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/nixlenv"
)

func TestExporterDeterminesRingAndStoreDirectory(t *testing.T) {
	for _, tt := range []struct {
		name  string
		vars  map[string]string
		ring  bool
		store string
	}{
		{"nothing", nil, false, ""},
		{"enabled", map[string]string{nixlenv.Enable: "y"}, true, ""},
		{"enabled in another way", map[string]string{nixlenv.Enable: "True"}, true, ""},
		{"disabled", map[string]string{nixlenv.Enable: "n", nixlenv.Exporter: "BUFFER"}, false, ""},
		{"neither", map[string]string{nixlenv.Enable: "maybe"}, false, ""},
		{"empty exporter", map[string]string{nixlenv.Enable: "1", nixlenv.Exporter: ""}, true, ""},
		{"ring", map[string]string{nixlenv.Enable: "enable", nixlenv.Exporter: "BUFFER"}, true, ""},
		{"prometheus", map[string]string{nixlenv.Enable: "on", nixlenv.Exporter: "prometheus"}, false, ""},
		{"store", map[string]string{
			nixlenv.Enable: "yes", nixlenv.Exporter: "prometheus_mp", nixlenv.MultiprocDir: "/dev/shm/nixl",
		}, false, "/dev/shm/nixl"},
		{"ring, and a directory for stores", map[string]string{
			nixlenv.Enable: "yes", nixlenv.MultiprocDir: "/dev/shm/nixl",
		}, true, ""},
		{"store, disabled", map[string]string{
			nixlenv.Enable: "no", nixlenv.Exporter: "prometheus_mp", nixlenv.MultiprocDir: "/dev/shm/nixl",
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
