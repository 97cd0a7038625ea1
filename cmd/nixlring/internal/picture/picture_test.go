// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/nixl-otel/nixl-otel/bridge/session"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// pageOf returns the page of a session with some packets.
func pageOf(t *testing.T, packets ...session.Packet) string {
	t.Helper()
	s, err := session.Open(t.TempDir(), session.WithMeterProvider(noop.NewMeterProvider()))
	must.OK(t, err)
	for _, p := range packets {
		must.OK(t, s.Record(t.Context(), p))
	}
	s.AddGeneratedTokens(t.Context(), 5)
	must.OK(t, s.Close())
	return pageOfFile(t, s.Summary().CSVLog)
}

func pageOfFile(t *testing.T, path string) string {
	t.Helper()
	r, err := session.Analyze(path)
	must.OK(t, err)
	var b strings.Builder
	must.OK(t, Write(&b, r))
	return b.String()
}

func at(ms int) time.Time { return time.Unix(1763318069, 0).Add(time.Duration(ms) * time.Millisecond) }

func contains(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			t.Errorf("the page lacks %s", text)
		}
	}
}

// Devices have colors by decreasing time: in the timeline, whose axis of durations is logarithmic, and in the layers.
func TestPageShowsTimelineLayersWorkersAndFailures(t *testing.T) {
	page := pageOf(t,
		session.Packet{ID: 1, Layer: 0, Operation: "attention", Device: session.CPU, Duration: time.Millisecond, End: at(1)},
		session.Packet{ID: 2, Layer: 0, Operation: "attention", Device: session.IGPU, Duration: 99 * time.Millisecond, End: at(100)},
		session.Packet{ID: 3, Layer: 1, Operation: "expert_ffn", Device: session.IGPU, Duration: 10 * time.Millisecond, End: at(50), Err: errors.New("out of memory")},
	)
	contains(t, page,
		`<path class="dots" style="stroke: var(--series5)" d="M1400 1h0"/>`, // igpu
		`<path class="dots" style="stroke: var(--series2)" d="M14 320h0"/>`, // cpu
		`<path class="cross" d="M700 160m-4-4l8 8m0-8l-8 8"/>`,
		`<i style="background: var(--series5)"></i>igpu: 99.0 ms, 99.0%`,
		`<title>layer 0: 100 ms in 2 packets, 50.0 ms on average, 0 failed</title><rect style="fill: var(--series5)"`,
		`<td class="name">igpu_attention_layer_0</td><td><span class="meter"><i style="width: 99.0%">`,
		`<td class="error">out of memory</td>`, `<div class="detail">5 generated, 0 prompt</div>`, "66.7% succeeded",
	)
}

// Whatever a session's names are, the page loads and runs nothing.
func TestPageNeedsNoNetworkAndRunsNothing(t *testing.T) {
	const hostile = `"><script src=//evil.example></script><img src=http://evil.example onerror=alert(1)>`
	page := pageOf(t, session.Packet{Operation: hostile, Device: hostile, Worker: hostile, Err: errors.New(hostile)}, session.Packet{Operation: hostile, Device: hostile})
	contains(t, page, `content="default-src 'none'; style-src 'unsafe-inline'"`, "&lt;script")
	for _, found := range regexp.MustCompile(`<(script|img|link|iframe|a) |url\(|@import|<[^>]*\s(src|href|on\w+)=`).FindAllString(page, -1) {
		t.Errorf("the page has %s", found)
	}
}

func TestSizeOfAPageDoesNotDependOnTheNumberOfPackets(t *testing.T) {
	var sizes []int
	for _, n := range []int{1, 20} {
		var packets []session.Packet
		for i := range 1000 * n {
			packets = append(packets, session.Packet{
				Operation: "attention", Layer: i % 300, Device: fmt.Sprint("npu", i%10), Duration: time.Duration(1+i%100) * time.Millisecond, End: at(i / n),
			})
		}
		sizes = append(sizes, len(pageOf(t, packets...)))
	}
	if sizes[1] > 10*sizes[0] {
		t.Errorf("the pages have %v bytes", sizes)
	}
}

func TestPagesOfUnusualSessions(t *testing.T) {
	contains(t, pageOf(t), "The file has no packets.")
	contains(t, pageOf(t, session.Packet{Operation: "embedding", Layer: -1, Device: session.CPU, End: at(0)}), "Timeline", "1 µs", "10 µs")
	contains(t, pageOf(t, session.Packet{Operation: "only failed", Device: session.CPU, End: at(0), Err: errors.New("no memory")}), "Timeline", "no memory")
	for _, name := range []string{"session_2025-11-17_00-04-29", "test_session"} {
		contains(t, pageOfFile(t, filepath.Join("../../../../bridge/session/testdata/upstream", name+".csv")), "Timeline", "Time per layer", "generated")
	}
}
