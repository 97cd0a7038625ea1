// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package dashboards

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/diagnose/fleets"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/semconv"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
)

// The fleets that promtool judges must be judged the same from what real backends have stored. All end at the same time, and each
// is a cluster of its own. Every other one has exponential histograms.
func TestWhyJudgesTheFleetsOfRealBackends(t *testing.T) {
	nixlring := built.Path(t, "NIXLRING")
	backends := []backend{startPrometheusWith(t, promotion(t)), startVictoriaMetrics(t)}
	const longest = 2 * time.Hour
	all := slices.DeleteFunc(slices.Concat(fleets.Incidents(), fleets.Healthy()), func(f fleets.Fleet) bool {
		return len(f.Members) > 100 || f.Length > longest || !regexp.MustCompile(*only).MatchString(f.Name)
	})
	end := time.Now().Truncate(time.Minute)
	agents := sendFleets(t, all, end, longest, backends)
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			if b.name == "VictoriaMetrics" {
				_, err := b.get(t, "/internal/force_flush", nil)
				must.OK(t, err)
			}
			var v struct{ Findings []diagnose.Finding }
			begin := time.Now()
			cmd := exec.CommandContext(t.Context(), nixlring, "why", "--prometheus", b.url, "--at", strconv.FormatInt(end.Unix(), 10), "--for", longest.String(), "-o", "json")
			var errs bytes.Buffer
			cmd.Stderr = &errs
			out, _ := cmd.Output() // its exit code says that there are problems
			t.Logf("nixlring why: %v for %d agents", time.Since(begin).Round(10*time.Millisecond), agents)
			if err := json.Unmarshal(out, &v); err != nil {
				t.Fatalf("%v: %s %s", err, out, errs.String())
			}
			found := make(map[string][]diagnose.Finding)
			for _, f := range v.Findings {
				cluster := f.Agents[0].Cluster
				found[cluster] = append(found[cluster], f)
			}
			top := exec.CommandContext(t.Context(), nixlring, "top", "--prometheus", b.url, "--at", strconv.FormatInt(end.Unix(), 10), "--for", "5m", "-o", "json")
			text, err := top.Output()
			must.OK(t, err)
			var last diagnose.Frame
			lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
			must.OK(t, json.Unmarshal(lines[len(lines)-1], &last))
			forms := make(map[bool]int) // agents with buckets
			for i := range last.Agents {
				a := &last.Agents[i]
				if len(a.Times.Counts) > 0 && len(a.Sizes.Counts) > 0 {
					forms[slices.IndexFunc(all, func(f fleets.Fleet) bool { return f.Name == a.Cluster })%2 == 0]++
				}
			}
			if forms[true] == 0 || forms[false] == 0 {
				t.Errorf("agents with buckets, by whether they are exponential: %v of %d", forms, len(last.Agents))
			}
			for i := range all {
				for _, wrong := range all[i].Misjudged(found[all[i].Name]) {
					t.Errorf("%s: %s", all[i].Name, wrong)
				}
				for _, a := range all[i].Alerts {
					const ended = "a Collector that is killed every three minutes" // the alert about it is short
					only := all[i].Name != ended && slices.Contains([]string{"NIXLMemoryGrows", "NIXLSmallerTransfers", "NIXLCollectorCrashLoop"}, a.Name)
					if only && !slices.ContainsFunc(found[all[i].Name], func(f diagnose.Finding) bool { return string(f.Kind) == a.Name }) {
						t.Errorf("%s: the alert %s isn't found", all[i].Name, a.Name)
					}
				}
			}
		})
	}
}

// sendFleets sends fleets, which end at a time, to backends in order of time. It returns the number of agents.
func sendFleets(t *testing.T, all []fleets.Fleet, end time.Time, longest time.Duration, backends []backend) (agents int) {
	t.Helper()
	readings := make([][][]fleets.Reading, len(all))
	for i := range all {
		readings[i] = all[i].Readings()
		agents += len(all[i].Members)
	}
	for ago := longest; ago >= 0; ago -= fleets.Every {
		md := pmetric.NewMetrics()
		for i := range all {
			if n := len(readings[i]) - 1 - int(ago/fleets.Every); n >= 0 {
				for k := range readings[i][n] {
					r := &readings[i][n][k]
					sendReading(md, all[i].Name, r, end.Add(r.Start.Sub(time.Unix(0, 0))-all[i].Length), end.Add(-ago), i%2 == 0)
				}
			}
		}
		for _, b := range backends {
			b.send(t, md)
		}
	}
	return agents
}

// sendReading adds the metrics of an agent that the receiver reports, which count since a start.
func sendReading(md pmetric.Metrics, cluster string, r *fleets.Reading, start, at time.Time, exponential bool) {
	a, attributes := r.Identity, make(map[string]string)
	for k, v := range map[string]string{
		"k8s.cluster.name": cluster, "k8s.namespace.name": a.Namespace, "service.name": a.Service, "k8s.pod.name": a.Pod, "host.name": a.Host,
		"nixl.agent.name": a.Name, "service.instance.id": fmt.Sprint(cluster, a.ID, r.Stream),
	} {
		if v != "" {
			attributes[k] = v
		}
	}
	report := reports(md, attributes)
	begin, stamp := pcommon.NewTimestampFromTime(start), pcommon.NewTimestampFromTime(at)
	with := func(m pcommon.Map, pairs []string) {
		for pair := range slices.Chunk(pairs, 2) {
			m.PutStr(pair[0], pair[1])
		}
	}
	sum := func(name, unit string, monotonic bool, v float64, attributes ...string) {
		sum := report.metric(name, unit).SetEmptySum()
		sum.SetIsMonotonic(monotonic)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		p := sum.DataPoints().AppendEmpty()
		p.SetStartTimestamp(begin)
		p.SetTimestamp(stamp)
		p.SetDoubleValue(v)
		with(p.Attributes(), attributes)
	}
	counter := func(name, unit string, v float64, attributes ...string) { sum(name, unit, true, v, attributes...) }
	gauge := func(name, unit string, v float64) {
		p := report.metric(name, unit).SetEmptyGauge().DataPoints().AppendEmpty()
		p.SetTimestamp(stamp)
		p.SetDoubleValue(v)
	}
	histogram := func(name, unit string, sum float64, n uint64, attributes ...string) {
		m := report.metric(name, unit)
		mean := sum / float64(n)
		if exponential {
			h := m.SetEmptyExponentialHistogram()
			h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			p := h.DataPoints().AppendEmpty()
			p.SetStartTimestamp(begin)
			p.SetTimestamp(stamp)
			p.SetSum(sum)
			p.SetCount(n)
			p.Positive().SetOffset(int32(math.Ceil(math.Log2(mean))) - 1)
			p.Positive().BucketCounts().FromRaw([]uint64{n})
			with(p.Attributes(), attributes)
			return
		}
		h := m.SetEmptyHistogram()
		h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		p := h.DataPoints().AppendEmpty()
		p.SetStartTimestamp(begin)
		p.SetTimestamp(stamp)
		p.SetSum(sum)
		p.SetCount(n)
		p.ExplicitBounds().FromRaw([]float64{1})
		p.BucketCounts().FromRaw([]uint64{n, 0})
		with(p.Attributes(), attributes)
	}
	sum("nixl.agent.up", "1", false, float64(int(r.Up)-int(diagnose.No)))
	gauge("nixl.telemetry.ring.capacity", "{event}", 4096)
	gauge("nixl.telemetry.ring.utilization", "1", r.Fill())
	if *r.Memory > 0 { // absent until the first registration
		sum("nixl.memory.usage", "By", false, float64(*r.Memory))
	}
	counter("nixl.telemetry.ring.saturations", "{saturation}", float64(r.Ring.Saturations))
	counter("nixl.telemetry.ring.foreign_reads", "{read}", float64(r.Ring.Foreign))
	counter("nixl.telemetry.ring.restarts", "{restart}", float64(r.Ring.Restarts))
	for _, kind := range []string{ // every status is reported from 0 on
		semconv.ErrorNotPosted, semconv.ErrorInvalidParam, semconv.ErrorBackend, semconv.ErrorNotFound, semconv.ErrorMismatch, semconv.ErrorNotAllowed, semconv.ErrorRepostActive,
		semconv.ErrorUnknown, semconv.ErrorNotSupported, semconv.ErrorRemoteDisconnect, semconv.ErrorCanceled, semconv.ErrorNoTelemetry,
	} {
		counter("nixl.errors", "{error}", float64(r.Errors[kind]), "error.type", kind)
	}
	for d, direction := range []string{"transmit", "receive"} {
		m := r.Moved[d]
		if m.Transfers == 0 {
			continue
		}
		counter("nixl.transfer.io", "By", float64(m.Bytes), "nixl.transfer.direction", direction)
		counter("nixl.transfer.requests", "{request}", float64(m.Transfers), "nixl.transfer.direction", direction)
		speeds := 0.0
		for n, count := range r.Speeds[d].Counts {
			speeds += float64(count) * r.Speeds[d].Bounds[min(n, len(r.Speeds[d].Bounds)-1)]
		}
		histogram("nixl.transfer.throughput", "By/s", speeds, m.Transfers, "nixl.transfer.direction", direction)
	}
	if sum := r.Both(); sum.Transfers > 0 {
		histogram("nixl.transfer.duration", "s", sum.Seconds, sum.Transfers)
		histogram("nixl.transfer.size", "By", float64(sum.Bytes), sum.Transfers)
		histogram("nixl.transfer.post_duration", "s", r.Post, sum.Transfers)
	}
}
