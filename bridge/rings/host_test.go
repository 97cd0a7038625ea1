// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package rings

import (
	"os"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

func TestHostNameComesFromTheEnvironmentOrTheSystem(t *testing.T) {
	system, err := os.Hostname()
	must.OK(t, err)
	for attributes, want := range map[string]string{
		"":                        system,
		"team=x":                  system,
		"host.name=":              system,
		"host.name=node-7,team=x": "node-7",
		"host.name=node-%ff":      "node-\uFFFD",
	} {
		t.Setenv("OTEL_RESOURCE_ATTRIBUTES", attributes)
		if got, err := hostName(); got != want || err != nil {
			t.Errorf("OTEL_RESOURCE_ATTRIBUTES=%s: host name %q, error %v; want %q", attributes, got, err, want)
		}
	}
}
