// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package chaos

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/test/chaos/internal/backend"
	"github.com/nixl-otel/nixl-otel/test/chaos/internal/ledger"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
)

// The file systems of a ring and of the storage hang. The events of other agents are still counted,
// and the log says what doesn't work.
func TestHangingFileSystemsDelayNoOtherAgent(t *testing.T) {
	t.Parallel()
	state, stuck := newDisk(t), newDisk(t)
	if state.path == state.data {
		t.Skip("FUSE file systems can't be mounted here")
	}
	rings, to := t.TempDir(), backend.NewHTTP(t)
	c := setup{overlays: []string{fmt.Sprintf(`
extensions:
  file_storage: {directory: %q}
receivers:
  nixl_shm:
    directories: [%q, %q]
    initial_delay: 0s
    collection_interval: 100ms
    storage: file_storage
    metrics: {nixl.events: {enabled: true}}
    resource_attributes: {nixl.telemetry.path: {enabled: true}}
exporters:
  otlp_http: {endpoint: %q}
service:
  extensions: [file_storage]
  pipelines: {metrics: {receivers: [nixl_shm], exporters: [otlp_http]}}
`, state.path, rings, stuck.path, to.URL())}}.start(t)
	state.Lock()
	defer state.Unlock()
	stuck.reads.Lock()
	defer stuck.reads.Unlock()

	const slots = 1 << 15
	w, err := ringbuf.Create(filepath.Join(stuck.data, "stuck"), ringbuf.V4, slots)
	must.OK(t, err)
	defer w.Close()
	_, err = w.PushBatch(slices.Repeat([]ringbuf.Event{ringbuf.NewEvent(ringbuf.TypeTxBytes, 1)}, slots/2))
	must.OK(t, err)
	must.Eventually(t, func() string { return c.says(filepath.Join(stuck.path, "stuck")) })

	path, want := goodRing(t, rings, 9)
	to.Await(t, func(got map[string]ledger.Series) string {
		for name, n := range want {
			if got[path][name] != n {
				return fmt.Sprintf("%s is %d, want %d", name, got[path][name], n)
			}
		}
		return ""
	})
	must.Eventually(t, func() string { return c.says("checkpoint was not stored within") })
}

// says returns "" if a warning or an error in the log contains a text.
func (c collector) says(text string) string {
	for _, e := range built.Complaints(c.Process) {
		if strings.Contains(e.Line, text) {
			return ""
		}
	}
	return "no line of the log has " + text
}
