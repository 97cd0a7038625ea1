// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// family is one metric of a page in the Prometheus text format.
type family struct {
	Type   string
	Series map[string]float64 // by labels, {a=b,c=d}
}

// A real agent served the page while its application executed the operations in the
// log. The test passes the same operations through a ring.
func TestExporterNamesMatchNIXLsExporter(t *testing.T) {
	served := filepath.Join(ringtest.Root(t), "testdata", "rings", "real-agent")
	want := readPage(t, filepath.Join(served, "v1.4.0_prometheus_scrape.txt"))
	dir := t.TempDir()
	w := ring(t, dir, "promA", ringbuf.V4, 1024)
	push(t, w, readOperations(t, filepath.Join(served, "v1.4.0_prometheus_scrape.applog.txt"))...)

	h := newHarness(t, dir, func(c *Config) { c.ExporterNames = true })
	h.on.hostname = func() (string, error) { return "vm", nil }
	got := exporterFamilies(t, h.start().next())

	// NIXL v1.4.0 has no histograms; later versions do.
	for _, name := range []string{"agent_xfer_time_us", "agent_xfer_post_time_us"} {
		if got[name].Type != "histogram" {
			t.Errorf("%s is a %q", name, got[name].Type)
		}
		delete(got, name)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-served by NIXL +received)\n%s", d)
	}
}

// readPage reads a page in the Prometheus text format, without the metrics of the
// server itself.
func readPage(t *testing.T, file string) map[string]family {
	t.Helper()
	page := make(map[string]family)
	eachLine(t, file, func(line string) {
		if name, kind, ok := strings.Cut(strings.TrimPrefix(line, "# TYPE "), " "); ok && strings.HasPrefix(line, "# TYPE agent_") {
			page[name] = family{Type: kind, Series: make(map[string]float64)}
		}
		m := regexp.MustCompile(`^(agent_\w+)(\{.*\}) (\S+)$`).FindStringSubmatch(line)
		if m == nil {
			return
		}
		value, err := strconv.ParseFloat(m[3], 64)
		must.OK(t, err)
		page[m[1]].Series[strings.ReplaceAll(m[2], `"`, "")] = value
	})
	return page
}

// readOperations returns the events that an agent writes for the operations of a log,
// in layout V4.
func readOperations(t *testing.T, file string) (events []ringbuf.Event) {
	t.Helper()
	status := map[string]ringbuf.Type{"-2": ringbuf.TypeErrInvalidParam, "-4": ringbuf.TypeErrNotFound}
	eachLine(t, file, func(line string) {
		field := strings.Fields(line)
		number := func(key string) uint64 {
			m := regexp.MustCompile(`(?:^|\s)` + key + `(\d+)`).FindStringSubmatch(line)
			if m == nil {
				t.Fatalf("no %s in %q", key, line)
			}
			n, err := strconv.ParseUint(m[1], 10, 64)
			must.OK(t, err)
			return n
		}
		switch field[0] {
		case "registerMem":
			events = append(events, ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, number("")))
		case "deregisterMem":
			events = append(events, ringbuf.NewEvent(ringbuf.TypeMemoryDeregistered, number("")))
		case "xfer":
			group := write(number("bytes="), number("xfer_us="), number("post_us="))
			if field[2] == "READ" {
				group[2].Type, group[3].Type = ringbuf.TypeRxBytes, ringbuf.TypeRxRequests
			}
			events = append(events, group...)
		case "err":
			// No agent counts a request that is a null pointer.
			if field[1] != "postXferReq(null)" {
				events = append(events, ringbuf.NewEvent(status[field[len(field)-1]], 1))
			}
		}
	})
	return events
}

func eachLine(t *testing.T, file string, fn func(string)) {
	t.Helper()
	text, err := os.ReadFile(file)
	must.OK(t, err)
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if strings.TrimSpace(lines.Text()) != "" {
			fn(lines.Text())
		}
	}
}

// exporterFamilies returns the metrics of a batch that have the names of NIXL's
// exporter, as a Prometheus exporter would serve them.
func exporterFamilies(t *testing.T, m pmetric.Metrics) map[string]family {
	t.Helper()
	page := make(map[string]family)
	for _, metric := range m.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		if !strings.HasPrefix(metric.Name(), "agent_") {
			continue
		}
		if metric.Unit() != "" {
			t.Errorf("%s has the unit %q, which exporters append to the name", metric.Name(), metric.Unit())
		}
		f := family{Series: make(map[string]float64)}
		var points pmetric.NumberDataPointSlice
		switch {
		case metric.Type() == pmetric.MetricTypeHistogram:
			page[metric.Name()] = family{Type: "histogram"}
			continue
		case metric.Type() == pmetric.MetricTypeSum && metric.Sum().IsMonotonic():
			f.Type, points = "counter", metric.Sum().DataPoints()
		case metric.Type() == pmetric.MetricTypeGauge:
			f.Type, points = "gauge", metric.Gauge().DataPoints()
		default:
			t.Fatalf("%s is a %v", metric.Name(), metric.Type())
		}
		for _, dp := range points.All() {
			f.Series[labels(dp.Attributes())] = float64(dp.IntValue())
		}
		page[metric.Name()] = f
	}
	return page
}

func TestExporterNamesAreOffByDefault(t *testing.T) {
	dir := t.TempDir()
	push(t, ring(t, dir, "agent", ringbuf.V4, 16), write(1, 1, 1)...)
	for name := range one(t, newHarness(t, dir).start().next()).metrics() {
		if !strings.HasPrefix(name, "nixl.") {
			t.Errorf("metric %s", name)
		}
	}
}

// 123/1e6*1e6 isn't 123.
func TestExporterHistogramsHaveWholeMicroseconds(t *testing.T) {
	const agent = "{agent_name=agent,hostname=" + testHost + "}"
	dir := t.TempDir()
	w := ring(t, dir, "agent", ringbuf.V4, 16)
	push(t, w, write(1, 123, 0)...)
	push(t, w, write(1, 249, 10)...)
	h := newHarness(t, dir, func(c *Config) { c.ExporterNames = true }).start()
	points := one(t, h.next()).points
	bounds := []float64{
		10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1e6, 5e6, 10e6,
	}
	for name, want := range map[string]distribution{
		"agent_xfer_time_us" + agent: {
			Count: 2, Sum: 372, Min: 123, Max: 249, Bounds: bounds, Counts: []uint64{4: 2, 18: 0},
		},
		"agent_xfer_post_time_us" + agent: {
			Count: 2, Sum: 10, Min: 0, Max: 10, Bounds: bounds, Counts: []uint64{0: 2, 18: 0},
		},
	} {
		if d := cmp.Diff(any(want), points[name]); d != "" {
			t.Errorf("%s (-want +got)\n%s", name, d)
		}
	}
}

// A Prometheus exporter makes labels of the bounds.
func TestExporterHistogramsHaveTheConfiguredBounds(t *testing.T) {
	dir := t.TempDir()
	push(t, ring(t, dir, "agent", ringbuf.V4, 16), write(1, 11, 1)...)
	h := newHarness(t, dir, func(c *Config) {
		c.ExporterNames = true
		c.Histograms.Duration.Bounds = []float64{1.5e-6, 1.1e-5, 3e-4, 0.7}
	}).start()
	got := one(t, h.next()).points[fmt.Sprintf("agent_xfer_time_us{agent_name=agent,hostname=%s}", testHost)]
	want := distribution{
		Count: 1, Sum: 11, Min: 11, Max: 11,
		Bounds: []float64{1.5, 11, 300, 700000}, Counts: []uint64{0, 1, 0, 0, 0},
	}
	if d := cmp.Diff(any(want), got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestExporterHistogramsNeedExplicitBounds(t *testing.T) {
	for _, kind := range []tally.HistogramKind{tally.Exponential, tally.NoHistogram} {
		dir := t.TempDir()
		push(t, ring(t, dir, "agent", ringbuf.V4, 16), write(1, 1, 1)...)
		h := newHarness(t, dir, func(c *Config) { c.ExporterNames, c.Histograms.Duration.Kind = true, kind }).start()
		metrics := one(t, h.next()).metrics()
		if metrics["agent_xfer_time_us"] || !metrics["agent_xfer_time_total"] || !metrics["agent_xfer_time"] {
			t.Errorf("with histograms %s: metrics %v", kind, metrics)
		}
		h.shutdown()
	}
}
