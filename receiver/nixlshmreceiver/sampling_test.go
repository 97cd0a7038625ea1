// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// By default, the Collector drops log lines with the same level and message after the
// tenth in ten seconds. Lines about different rings must have different messages, also
// if the rings belong to different receivers.
func TestLogSamplingKeepsALineForEveryRing(t *testing.T) {
	const receivers, each = 4, 7 // few enough not to share a line
	lines := newLogLines()
	log := zap.New(zapcore.NewSamplerWithOptions(lines, 10*time.Second, 10, 100))
	type entry struct{ text, path string }
	want := make(map[entry]bool)
	for range receivers {
		dir := t.TempDir()
		for i := range each {
			full := ring(t, dir, fmt.Sprintf("full-%d", i), ringbuf.V4, 16)
			for range 15 {
				push(t, full, ringbuf.NewEvent(ringbuf.TypeTxBytes, 1))
			}
			broken := ring(t, dir, fmt.Sprintf("broken-%d", i), ringbuf.V4, 16)
			must.OK(t, os.Truncate(broken.Path(), 100))
			want[entry{"ring opened", full.Path()}] = true
			want[entry{"ring was full", full.Path()}] = true
			want[entry{"ring can't be opened", broken.Path()}] = true
		}
		h := newHarness(t, dir)
		h.settings.Logger = log
		h.start().shutdown()
	}
	for len(lines.entries) > 0 {
		line := <-lines.entries
		maps.DeleteFunc(want, func(e entry, _ bool) bool { return containsAll(line, []string{e.text, "path=" + e.path}) })
	}
	if len(want) > 0 {
		t.Errorf("%d of %d lines were dropped:\n%v", len(want), receivers*each*3, slices.Collect(maps.Keys(want)))
	}
}
