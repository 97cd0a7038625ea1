// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestAgentsWithTheSameNameInTwoDirectoriesAreSeparate(t *testing.T) {
	one, other := t.TempDir(), t.TempDir()
	push(t, ring(t, one, "decode-0", ringbuf.V4, 64), write(100, 9, 3)...)
	push(t, ring(t, other, "decode-0", ringbuf.V1, 64), write(7, 5, 2)...)
	h := newHarness(t, one, func(c *Config) {
		c.Directories = append(c.Directories, other)
		c.ResourceAttributes.NixlTelemetryPath.Enabled = true
		c.ResourceAttributes.NixlTelemetryLayout.Enabled = true
	}).start()

	type identity struct {
		Name, Service, Host, Layout, Path string
		Transmitted                       int64
	}
	got := make(map[string]identity) // by service.instance.id
	for _, rm := range h.next().ResourceMetrics().All() {
		a := readAgent(t, rm)
		r := a.resource
		got[r["service.instance.id"]] = identity{
			Name: r["nixl.agent.name"], Service: r["service.name"], Host: r["host.name"],
			Layout: r["nixl.telemetry.layout"], Path: r["nixl.telemetry.path"], Transmitted: a.int(transmitted),
		}
	}
	want := map[string]identity{
		instanceID(one, "decode-0"):   {"decode-0", "nixl", testHost, "v4", filepath.Join(one, "decode-0"), 100},
		instanceID(other, "decode-0"): {"decode-0", "nixl", testHost, "v1", filepath.Join(other, "decode-0"), 7},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
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

// Applications name agents. OTLP would reject the whole batch for one invalid name.
func TestAgentNamesAreConvertedToValidUTF8(t *testing.T) {
	names := map[string]string{ // file to nixl.agent.name
		"plain": "plain", "host/worker/3": "host/worker/3", "with space": "with space", "a:b,c": "a:b,c", "näme-名前": "näme-名前",
		"new\nline": "new\nline", ".hidden": ".hidden", `q"uote\`: `q"uote\`, "not\xffutf8": "not\uFFFDutf8",
	}
	dir := t.TempDir()
	want := make(map[string]int64)
	for file, name := range names {
		size := uint64(len(want) + 1)
		push(t, ring(t, dir, file, ringbuf.V3, 16), write(size, 1, 1)...)
		want[name] = int64(size)
	}
	h := newHarness(t, dir, func(c *Config) {
		c.Include = []string{"**"}
		c.ResourceAttributes.NixlTelemetryPath.Enabled = true
	}).start()
	batch := h.next()
	got := make(map[string]int64)
	for name, a := range read(t, batch) {
		got[name] = a.int(transmitted)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	onlyUTF8(t, batch)
}

func TestRingsInSubdirectoriesNeedAPattern(t *testing.T) {
	dir := t.TempDir()
	ring(t, dir, "flat", ringbuf.V4, 16)
	ring(t, dir, "host/worker", ringbuf.V4, 16)
	ring(t, dir, "host/deep/er", ringbuf.V4, 16)
	for pattern, want := range map[string][]string{
		"*":      {"flat"},
		"*/*":    {"host/worker"},
		"**":     {"flat", "host/deep/er", "host/worker"},
		"host/*": {"host/worker"},
	} {
		h := newHarness(t, dir, func(c *Config) { c.Include = []string{pattern} }).startWith(len(want))
		all := read(t, h.next())
		for _, name := range want {
			if all[name] == nil {
				t.Errorf("include %q: %s is missing", pattern, name)
			}
		}
		if len(all) != len(want) {
			t.Errorf("include %q: %d agents, want %v", pattern, len(all), want)
		}
		h.shutdown()
	}
}

func TestEventNamesAreConvertedToValidUTF8(t *testing.T) {
	dir := t.TempDir()
	w := ring(t, dir, "agent", ringbuf.V1, 16)
	unended := ringbuf.NewNamedEvent(ringbuf.CategoryBackend, "", 3)
	copy(unended.Name[:], strings.Repeat("x", len(unended.Name))) // without a NUL
	push(t, w, unended,
		ringbuf.NewNamedEvent(ringbuf.CategoryBackend, "a\xffb", 1), ringbuf.NewNamedEvent(ringbuf.CategoryBackend, "a\xfeb", 2))
	batch := newHarness(t, dir).start().next()
	a := one(t, batch)
	for name, value := range map[string]int64{"a\uFFFDb": 3, strings.Repeat("x", 32): 3} {
		point := "nixl.event.value{nixl.event.category=backend,nixl.event.name=" + name + "}"
		if got := a.int(point); got != value {
			t.Errorf("%s is %d, want %d", point, got, value)
		}
	}
	onlyUTF8(t, batch)
}

// onlyUTF8 fails the test if a string of the batch is invalid UTF-8.
func onlyUTF8(t *testing.T, m pmetric.Metrics) {
	t.Helper()
	for _, rm := range m.ResourceMetrics().All() {
		a := readAgent(t, rm)
		for k, v := range a.resource {
			if !utf8.ValidString(v) {
				t.Errorf("%s is %q", k, v)
			}
		}
		for point := range a.points {
			if !utf8.ValidString(point) {
				t.Errorf("point %q", point)
			}
		}
	}
}
