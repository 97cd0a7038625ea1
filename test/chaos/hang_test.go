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
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/test/internal/otelcol"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
)

// The file systems of a ring and of the storage hang. The events of other agents are still counted,
// and the log says what doesn't work.
func TestHangingFileSystemsDelayNoOtherAgent(t *testing.T) {
	t.Parallel()
	state, stuck := newDisk(t), newDisk(t)
	if state.path == state.data {
		t.Skip("FUSE file systems can't be mounted here")
	}
	rings, backend := t.TempDir(), otlpfile.NewSink(t)
	c := otelcol.Setup{Overlays: []string{otelcol.Every(100 * time.Millisecond), fmt.Sprintf(`
extensions:
  file_storage: {directory: %q}
receivers:
  nixl_shm:
    directories: [%q, %q]
    storage: file_storage
exporters:
  otlp_http: {endpoint: %q}
service:
  extensions: [file_storage]
  pipelines: {metrics: {receivers: [nixl_shm], exporters: [otlp_http]}}
`, state.path, rings, stuck.path, backend.URL())}}.Start(t)
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
	must.Eventually(t, func() string { return says(c, filepath.Join(stuck.path, "stuck")) })

	other, err := ringbuf.Create(filepath.Join(rings, "other"), ringbuf.V4, 64)
	must.OK(t, err)
	defer other.Close()
	must.OK(t, other.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, 9)))
	must.EventuallyTrue(t, "events of the other agent", func() bool {
		return backend.Totals(t)[other.Path()]["nixl.transfer.io{nixl.transfer.direction=transmit}"].Int == 9
	})
	must.Eventually(t, func() string { return says(c, "checkpoint was not stored within") })
}

// says returns "" if a warning or an error in the log contains a text.
func says(c *otelcol.Collector, text string) string {
	for _, e := range c.Complaints() {
		if strings.Contains(e.Line, text) {
			return ""
		}
	}
	return "no line of the log has " + text
}
