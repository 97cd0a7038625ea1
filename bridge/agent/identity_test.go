// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/internal/identity"
	"github.com/nixl-otel/nixl-otel/internal/must"
)

func TestResourceAttributesIdentifyTheAgent(t *testing.T) {
	host, err := os.Hostname()
	must.OK(t, err)
	for name, c := range map[string]struct {
		dir  string
		env  map[string]string
		want map[string]string
	}{
		"defaults": {"", nil, map[string]string{
			"service.name": "nixl", "host.name": host, "nixl.agent.name": "a\uFFFD",
			"service.instance.id": identity.InstanceID(host, "/tmp/a\xff"),
		}},
		"environment": {"", map[string]string{
			"NIXL_TELEMETRY_DIR": "/run/nixl", "OTEL_SERVICE_NAME": "kv-cache", "OTEL_RESOURCE_ATTRIBUTES": "host.name=node-7,team=x",
		}, map[string]string{
			"service.name": "kv-cache", "host.name": "node-7", "nixl.agent.name": "a\uFFFD",
			"service.instance.id": identity.InstanceID("node-7", "/run/nixl/a\xff"),
		}},
		"directory": {"/dev/shm", map[string]string{"NIXL_TELEMETRY_DIR": "/run/nixl"}, map[string]string{
			"service.name": "nixl", "host.name": host, "nixl.agent.name": "a\uFFFD",
			"service.instance.id": identity.InstanceID(host, "/dev/shm/a\xff"),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, variable := range []string{"NIXL_TELEMETRY_DIR", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"} {
				t.Setenv(variable, c.env[variable])
			}
			attributes, err := agent.ResourceAttributes("a\xff", c.dir)
			must.OK(t, err)
			got := make(map[string]string)
			for _, kv := range attributes {
				got[string(kv.Key)] = kv.Value.AsString()
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("attributes (-want +got):\n%s", d)
			}
		})
	}
}
