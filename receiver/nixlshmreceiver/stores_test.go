// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package nixlshmreceiver

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/internal/storetest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// A real agent wrote the store.
func TestGoldenStore(t *testing.T) {
	for file, change := range map[string]func(*Config){
		"store":            func(c *Config) { c.Metrics.NixlAgentUp.Enabled = true },
		"store_everything": everything,
	} {
		t.Run(file, func(t *testing.T) {
			dir := t.TempDir()
			storetest.Copy(t, dir)
			h := newHarness(t, dir, change)
			clock := newClock()
			clock.pass(365 * 24 * time.Hour) // the process started later than the clock
			h.on.now = clock.now
			got := h.startWith(1).next()
			golden := filepath.Join("testdata", "golden", file+".yaml")
			if *update {
				writeGolden(t, golden, got)
			}
			compareGolden(t, golden, got)
		})
	}
}

// NIXL's prometheus_mp exporter served the same store.
func TestExporterNamesMatchPrometheusMP(t *testing.T) {
	dir := t.TempDir()
	storetest.Copy(t, dir)
	m := newHarness(t, dir, func(c *Config) { c.ExporterNames = true }).startWith(1).next()
	want := readSeries(t, filepath.Join(storetest.Dir(t), "scrape-mpA.txt"))
	if d := cmp.Diff(want, exporterSeries(t, m)); d != "" {
		t.Errorf("(-served by NIXL +received)\n%s", d)
	}
}

var seriesLine = regexp.MustCompile(`^(\w+)\{(.*)\} (\S+)$`)

// readSeries reads the series of a page in the Prometheus text format.
func readSeries(t *testing.T, file string) map[string]float64 {
	t.Helper()
	list := make(map[string]float64)
	eachLine(t, file, func(line string) {
		f := seriesLine.FindStringSubmatch(line)
		if f == nil {
			return
		}
		value, err := strconv.ParseFloat(f[3], 64)
		must.OK(t, err)
		pairs := strings.Split(strings.ReplaceAll(f[2], `"`, ""), ",")
		slices.Sort(pairs)
		list[f[1]+"{"+strings.Join(pairs, ",")+"}"] = value
	})
	return list
}

// exporterSeries returns the series with NIXL's names, as a Prometheus exporter would
// serve them.
func exporterSeries(t *testing.T, m pmetric.Metrics) map[string]float64 {
	t.Helper()
	list := make(map[string]float64)
	for _, metric := range m.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		name := metric.Name()
		if !strings.HasPrefix(name, "agent_") {
			continue
		}
		if metric.Description() == "" {
			t.Errorf("%s has no help text", name)
		}
		switch metric.Type() {
		case pmetric.MetricTypeSum:
			addSeries(t, list, name, metric.Sum().DataPoints())
		case pmetric.MetricTypeGauge:
			addSeries(t, list, name, metric.Gauge().DataPoints())
		case pmetric.MetricTypeHistogram:
			for _, dp := range metric.Histogram().DataPoints().All() {
				if dp.HasMin() || dp.HasMax() {
					t.Errorf("%s has a minimum or a maximum, but stores have none", name)
				}
				list[name+"_count"+labelsWith(dp.Attributes(), "")] = float64(dp.Count())
				list[name+"_sum"+labelsWith(dp.Attributes(), "")] = dp.Sum()
				var sum uint64
				for i, n := range dp.BucketCounts().All() {
					sum += n
					le := "+Inf"
					if i < dp.ExplicitBounds().Len() {
						le = strconv.FormatFloat(dp.ExplicitBounds().At(i), 'f', -1, 64)
					}
					list[name+"_bucket"+labelsWith(dp.Attributes(), "le="+le)] = float64(sum)
				}
			}
		default:
			t.Errorf("%s is a %v", name, metric.Type())
		}
	}
	return list
}

func addSeries(t *testing.T, list map[string]float64, name string, points pmetric.NumberDataPointSlice) {
	t.Helper()
	for _, dp := range points.All() {
		key := name + labelsWith(dp.Attributes(), "")
		if _, twice := list[key]; twice {
			t.Errorf("%s is reported twice", key)
		}
		list[key] = float64(dp.IntValue())
	}
}

func labelsWith(attrs pcommon.Map, more string) string {
	var pairs []string
	for k, v := range attrs.All() {
		pairs = append(pairs, k+"="+v.AsString())
	}
	if more != "" {
		pairs = append(pairs, more)
	}
	slices.Sort(pairs)
	return "{" + strings.Join(pairs, ",") + "}"
}

func TestExporterNamesHaveNIXLsHelpTexts(t *testing.T) {
	want := map[string]string{
		// NIXL v1.4.0 has no histograms; these texts are from its main branch.
		"agent_xfer_time_us":      "Distribution of transfer time from start to completion, in microseconds",
		"agent_xfer_post_time_us": "Distribution of time from start to posting to the back-end, in microseconds",
	}
	eachLine(t, filepath.Join(ringtest.Root(t), "testdata", "rings", "real-agent", "v1.4.0_prometheus_scrape.txt"), func(line string) {
		if name, help, ok := strings.Cut(strings.TrimPrefix(line, "# HELP "), " "); ok && strings.HasPrefix(line, "# HELP agent_") {
			want[name] = help
		}
	})
	dir := t.TempDir()
	push(t, ring(t, dir, "agent", ringbuf.V4, 16), write(1, 1, 1)...)
	m := newHarness(t, dir, func(c *Config) { c.ExporterNames = true }).start().next()
	got := make(map[string]string)
	for _, metric := range m.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		if strings.HasPrefix(metric.Name(), "agent_") {
			got[metric.Name()] = metric.Description()
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-NIXL +received)\n%s", d)
	}
}

func TestRingsAndStoresCanShareADirectory(t *testing.T) {
	dir := t.TempDir()
	push(t, ring(t, dir, "ring", ringbuf.V4, 16), write(7, 1, 1)...)
	for i := range 2 {
		w := storetest.Create(t, dir, storetest.Config{Agent: "store", PID: int64(i + 1), Rank: strconv.Itoa(i)})
		w.Transfer(0, 100, 20, 5)
	}
	h := newHarness(t, dir, func(c *Config) {
		c.ExporterNames = true
		c.ResourceAttributes.NixlTelemetryLayout.Enabled = true
	}).startWith(3)
	m := h.next()
	type resource struct {
		Layout, Rank string
		Bytes        int64
		PIDs         []string
	}
	got := make(map[string]resource)
	for _, rm := range m.ResourceMetrics().All() {
		text := func(key string) string {
			if v, ok := rm.Resource().Attributes().Get(key); ok {
				return v.Str()
			}
			return ""
		}
		r := resource{Layout: text(semconv.TelemetryLayout), Rank: text(semconv.LocalRank)}
		for _, metric := range rm.ScopeMetrics().At(0).Metrics().All() {
			switch metric.Name() {
			case semconv.TransferIO.Name:
				r.Bytes = metric.Sum().DataPoints().At(0).IntValue()
			case "agent_tx_bytes_total":
				for _, dp := range metric.Sum().DataPoints().All() {
					if pid, ok := dp.Attributes().Get("pid"); ok {
						r.PIDs = append(r.PIDs, pid.Str())
					}
				}
			}
		}
		got[text(semconv.AgentName)] = r
	}
	want := map[string]resource{
		"ring":  {Layout: "v4", Bytes: 7},
		"store": {Layout: "prometheus_mp_v1", Rank: "1", Bytes: 200, PIDs: []string{"1", "2"}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if s := h.rings().State(); len(s.Refused) != 0 {
		t.Errorf("refused are %v", slices.Collect(maps.Keys(s.Refused)))
	}
}

func TestInvalidStoreAffectsNoOtherAgent(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, storetest.Real)
	must.OK(t, os.WriteFile(path, storetest.Bytes(t)[:100], 0o600))
	storetest.Create(t, dir, storetest.Config{}).Transfer(0, 1, 1, 1)
	h := newHarness(t, dir).startWith(1)
	if a := read(t, h.next()); len(a) != 1 {
		t.Errorf("agents are %v", a)
	}
	h.log("warn: ", path, "store can't be read", "100 bytes")
	if refused := h.rings().State().Refused; refused[path].Reason != "invalid" {
		t.Errorf("refused are %v", refused)
	}
}

// The store of a process that has exited is closed.
func TestStoreOfExitedProcessIsNotCountedAsStale(t *testing.T) {
	dir := t.TempDir()
	exit := storetest.Copy(t, dir)
	storetest.Create(t, dir, storetest.Config{})
	h := newHarness(t, dir)
	telemetry := h.withTelemetry()
	h.startWith(2).next()
	exit()
	must.EventuallyTrue(t, "closed store of the exited process", func() bool { return h.rings().State().Open == 1 })
	h.next()
	want := map[string]int64{"open": 1, "stale": 0}
	if d := cmp.Diff(want, sums(t, telemetry, "rings")); d != "" {
		t.Errorf("rings (-want +got)\n%s", d)
	}
	if d := cmp.Diff(map[string]int64{"prometheus_mp_v1": 2}, sums(t, telemetry, "agents")); d != "" {
		t.Errorf("agents (-want +got)\n%s", d)
	}
}

// NIXL's exporter serves the series of a process until its store is removed.
func TestExporterNamesIncludeProcessesThatExitedWhileNoCollectorRan(t *testing.T) {
	dir, store := t.TempDir(), newMemory()
	id := newHarness(t, dir).settings.ID
	run := func() *harness {
		h := newHarness(t, dir, often, func(c *Config) { c.StorageID, c.ExporterNames = &memoryID, true })
		h.settings.ID = id
		h.extensions = map[component.ID]component.Component{memoryID: store}
		return h.startWith(0)
	}
	bytes := func(h *harness) map[string]float64 {
		all := exporterSeries(t, h.next())
		maps.DeleteFunc(all, func(name string, _ float64) bool { return !strings.HasPrefix(name, "agent_tx_bytes_total{") })
		return all
	}
	series := func(pid int) string {
		return "agent_tx_bytes_total{agent_instance=0,agent_name=agent,hostname=host,pid=" + strconv.Itoa(pid) + "}"
	}
	var writers []*storetest.Writer
	for pid := range 3 {
		w := storetest.Create(t, dir, storetest.Config{PID: int64(pid + 1)})
		w.Count(storetest.TxBytes, 10)
		writers = append(writers, w)
	}
	h := run()
	want := map[string]float64{series(1): 10, series(2): 10, series(3): 10}
	if d := cmp.Diff(want, bytes(h)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	h.shutdown()
	for _, w := range writers[:2] {
		w.Count(storetest.TxBytes, 5)
		w.Exit()
	}
	if err := os.Remove(writers[0].Path()); err != nil { // its values after the last checkpoint are lost
		t.Fatal(err)
	}
	h = run()
	want = map[string]float64{series(2): 15, series(3): 10}
	got := make(map[string]float64)
	must.EventuallyTrue(t, "series of all processes with a store", func() bool {
		maps.Copy(got, bytes(h))
		delete(got, series(1)) // reported once it is known that the store was removed
		return cmp.Equal(want, got)
	})
}

// A backend that adds up all series counts each transfer once.
func TestStreamsBeginAtZeroWhenTheResourceChangesOverARestart(t *testing.T) {
	t.Parallel() // it waits for a second in each life
	dir, extension := t.TempDir(), newMemory()
	w := ring(t, dir, "ring", ringbuf.V4, 64)
	counted := storetest.Create(t, dir, storetest.Config{Agent: "store"})
	id := newHarness(t, dir).settings.ID
	type stream struct {
		agent, cluster string
		start          pcommon.Timestamp
	}
	backend := make(map[stream]int64)
	for _, cluster := range []string{"east", "west", "west"} {
		h := newHarness(t, dir, func(c *Config) { c.StorageID, c.Resource = &memoryID, map[string]string{"k8s.cluster.name": cluster} })
		h.settings.ID = id
		h.extensions = map[component.ID]component.Component{memoryID: extension}
		h.startWith(2)
		push(t, w, write(10, 5, 2)...)
		counted.Transfer(0, 10, 5, 2)
		drained(t, w.Path()) // its checkpoint is stored
		for _, rm := range h.shutdown().ResourceMetrics().All() {
			a := readAgent(t, rm)
			s := stream{a.resource["nixl.agent.name"], a.resource["k8s.cluster.name"], a.start}
			if n := a.int(transmitted); n < backend[s] {
				t.Errorf("%v decreases from %d to %d", s, backend[s], n)
			} else {
				backend[s] = n
			}
		}
	}
	got := make(map[string]int64)
	for s, n := range backend {
		got[s.agent+" "+s.cluster] += n
	}
	want := map[string]int64{"ring east": 10, "ring west": 20, "store east": 10, "store west": 20}
	if d := cmp.Diff(want, got); d != "" || len(backend) != len(want) {
		t.Errorf("streams are %v; bytes (-want +got)\n%s", backend, d)
	}
}
