// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/identity"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
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
	h := newHarness(t, t.TempDir()).onlyLogs()
	h.create()
	want := attributes(newResources(h.cfg, h.cfg.ResourceAttributes, testHost).of(discovered()))
	want[semconv.ProcessPID], want[semconv.ProcessExecutableName], want[semconv.ContainerID] = "10", "python", "id-1"
	if d := cmp.Diff(want, attributes(h.own().slow.records.resources.of(discovered()))); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	must.OK(t, h.logs.Shutdown(t.Context()))
}

func TestResourceHasTheIdentifyingContainerAndTheServiceOfAnAgent(t *testing.T) {
	a := discovered()
	a.Resource = attribute.NewSet(attribute.String(semconv.ContainerID, "id-1"), attribute.String(semconv.ServiceName, "kv\xff"))
	cfg := createDefaultConfig()
	got := attributes(newResources(cfg, cfg.ResourceAttributes, "host").of(a))
	if got[semconv.ContainerID] != "id-1" || got[semconv.ServiceName] != "kv\uFFFD" {
		t.Errorf("resource %v", got)
	}
}

func TestAgentsOfTheSameNameInDirectoriesAndPodsAreSeparate(t *testing.T) {
	type agent struct {
		Attributes  map[string]string
		Transmitted int64
	}
	pods, one, other := t.TempDir(), t.TempDir(), t.TempDir()
	got, want := make(map[string]agent), make(map[string]agent) // by service.instance.id
	add := func(dir, path, instance, pod string, layout ringbuf.Layout, size uint64) {
		push(t, ring(t, dir, "decode-0", layout, 64), write(size, 9, 3)...)
		attributes := map[string]string{
			"service.name": "inference", "service.instance.id": instance, "host.name": testHost, "nixl.agent.name": "decode-0",
			"nixl.telemetry.path": path, "nixl.telemetry.layout": layout.String(),
		}
		if pod != "" {
			attributes["k8s.pod.uid"] = pod
		}
		want[instance] = agent{attributes, int64(size)}
	}
	for pod, size := range map[string]uint64{"uid-1": 100, "uid-2": 7} {
		dir := filepath.Join(pods, pod, "volumes", "kubernetes.io~empty-dir", "shm")
		must.OK(t, os.MkdirAll(dir, 0o750))
		add(dir, "shm/decode-0", identity.InstanceID(testHost, "pod "+pod+" shm/decode-0"), pod, ringbuf.V4, size)
	}
	add(one, filepath.Join(one, "decode-0"), instanceID(one, "decode-0"), "", ringbuf.V4, 50)
	add(other, filepath.Join(other, "decode-0"), instanceID(other, "decode-0"), "", ringbuf.V1, 3)
	h := newHarness(t, one, func(c *Config) {
		c.Directories = append(c.Directories, other)
		c.Discovery.Kubelet.GetOrInsertDefault().Path = pods
		c.ResourceAttributes.NixlTelemetryPath.Enabled = true
		c.ResourceAttributes.NixlTelemetryLayout.Enabled = true
		c.Resource = map[string]string{"service.name": "inference"}
	})
	telemetry := h.withTelemetry()
	h.startWith(4)
	h.log("ring opened", "/volumes", "k8s.pod.uid:uid-")
	for _, rm := range h.next().ResourceMetrics().All() {
		a := readAgent(t, rm)
		got[a.resource["service.instance.id"]] = agent{a.resource, a.int(transmitted)}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("agents (-want +got)\n%s", d)
	}
	if d := cmp.Diff(map[string]int64{"kubelet": 2}, sums(t, telemetry, "discovery_directories")); d != "" {
		t.Errorf("directories (-want +got)\n%s", d)
	}
	if n, _ := recorded(t, telemetry, "discovery_duration"); n == 0 {
		t.Error("no search was recorded")
	}
}

func TestConfiguredHostNameReplacesTheCollectors(t *testing.T) {
	dir := t.TempDir()
	ring(t, dir, "decode-0", ringbuf.V4, 64)
	identity := func(own, configured string) (host, instance string) {
		h := newHarness(t, dir, func(c *Config) {
			if configured != "" {
				c.Resource = map[string]string{"host.name": configured}
			}
		})
		h.on.hostname = func() (string, error) { return own, nil }
		r := one(t, h.start().shutdown()).resource
		return r["host.name"], r["service.instance.id"]
	}
	host, instance := identity("pod-x7k2p", testHost)
	if host != testHost || instance != instanceID(dir, "decode-0") {
		t.Errorf("host %s, instance %s", host, instance)
	}
	if _, other := identity("pod-9fq4w", testHost); other != instance {
		t.Error("service.instance.id depends on the name of the pod")
	}
	if host, other := identity("pod-9fq4w", ""); host != "pod-9fq4w" || other == instance {
		t.Errorf("without a configured one the host is %s, instance %s", host, other)
	}
}

func TestCreationFailsWithoutAHostName(t *testing.T) {
	h := newHarness(t, t.TempDir())
	h.on.hostname = func() (string, error) { return "", errors.New("no name") }
	_, err := newFactory(h.on).CreateMetrics(t.Context(), h.settings, h.cfg, consumertest.NewNop())
	if err == nil || !strings.Contains(err.Error(), "get the host name: no name; set host.name of resource instead") {
		t.Errorf("error is %v", err)
	}
}

// instanceID computes service.instance.id independently of the receiver. It must not
// change from release to release.
func instanceID(dir, name string) string {
	namespace := uuid.MustParse("4d63009a-8d0f-11ee-aad7-4c796ed8e320")
	return uuid.NewSHA1(namespace, []byte(testHost+"\x00"+filepath.Join(dir, name))).String()
}

// Any process that can create a file chooses its name. OTLP rejects a request with a string that isn't UTF-8.
func TestNamesAreConvertedToValidUTF8(t *testing.T) {
	dir := t.TempDir()
	want := make(map[string]int64)
	for file, name := range map[string]string{ // to nixl.agent.name
		"host/worker/3": "host/worker/3", "a:b,c": "a:b,c", "näme-名前": "näme-名前", "new\nline": "new\nline", "not\xffutf8": "not\uFFFDutf8",
	} {
		push(t, ring(t, dir, file, ringbuf.V1, 16), ringbuf.NewNamedEvent(ringbuf.CategoryBackend, "a\xffb", uint64(len(want)+1)))
		want[name+": a\uFFFDb"] = int64(len(want) + 1)
	}
	h := newHarness(t, dir, func(c *Config) {
		c.Include = []string{"**"}
		c.ResourceAttributes.NixlTelemetryPath.Enabled = true
	}).start()
	got := make(map[string]int64)
	for name, a := range read(t, h.next()) {
		for point := range a.points {
			if of, ok := strings.CutPrefix(point, "nixl.event.value{nixl.event.category=backend,nixl.event.name="); ok {
				got[name+": "+strings.TrimSuffix(of, "}")] = a.int(point)
			}
		}
		if path := a.resource["nixl.telemetry.path"]; !utf8.ValidString(path) {
			t.Errorf("path is %q", path)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
