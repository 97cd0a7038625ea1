// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// discovered returns an agent with all attributes.
func discovered() *engine.Snapshot {
	return &engine.Snapshot{Layout: ringbuf.V4, Agent: engine.Agent{
		ID: "pod uid-1 /tmp/a", Name: "a", Dir: "/tmp", Path: "/proc/10/root/tmp/a",
		Resource: attribute.NewSet(
			attribute.String(semconv.K8SPodUID, "uid-1"), attribute.String(semconv.K8SContainerName, "worker"),
			attribute.String(semconv.LocalRank, "3"), attribute.String("service.version", "1.2"),
		),
		Process: attribute.NewSet(
			attribute.Int(semconv.ProcessPID, 10), attribute.String(semconv.ProcessExecutableName, "python"),
			attribute.String(semconv.ContainerID, "id-1"),
		),
	}}
}

func attributes(set attribute.Set) map[string]string {
	all := make(map[string]string)
	for _, kv := range set.ToSlice() {
		all[string(kv.Key)] = kv.Value.String()
	}
	return all
}

func TestEveryResourceAttributeCanBeDisabledAndEnabled(t *testing.T) {
	defaults := attributes(newResources(createDefaultConfig(), createDefaultConfig().ResourceAttributes, "host").of(discovered()))
	for _, a := range semconv.ResourceAttributes() {
		name, enabled := a.Key, !a.OptIn
		if _, ok := defaults[name]; ok != enabled {
			t.Errorf("%s is on the resource by default: %v", name, ok)
		}
		cfg := createDefaultConfig()
		switched := confmap.NewFromStringMap(map[string]any{"resource_attributes": map[string]any{name: map[string]any{"enabled": !enabled}}})
		must.OK(t, switched.Unmarshal(cfg))
		if _, ok := attributes(newResources(cfg, cfg.ResourceAttributes, "host").of(discovered()))[name]; ok == enabled {
			t.Errorf("%s: enabling and disabling it changes nothing", name)
		}
	}
}

// Log records aren't added up, so they have the attributes of the process.
func TestLogRecordsHaveTheProcessAndItsContainer(t *testing.T) {
	cfg := createDefaultConfig()
	want := attributes(newResources(cfg, cfg.ResourceAttributes, "host").of(discovered()))
	want[semconv.ProcessPID], want[semconv.ProcessExecutableName], want[semconv.ContainerID] = "10", "python", "id-1"
	if d := cmp.Diff(want, attributes(newResources(cfg, forLogs(cfg.ResourceAttributes), "host").of(discovered()))); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestContainerThatIdentifiesAnAgentIsOnTheResource(t *testing.T) {
	a := discovered()
	a.Resource = attribute.NewSet(attribute.String(semconv.ContainerID, "id-1"))
	cfg := createDefaultConfig()
	if got := attributes(newResources(cfg, cfg.ResourceAttributes, "host").of(a)); got[semconv.ContainerID] != "id-1" {
		t.Errorf("resource %v", got)
	}
}
