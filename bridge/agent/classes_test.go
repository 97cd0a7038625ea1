// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// approximately compares sums with rounding errors.
var approximately = cmpopts.EquateApprox(1e-9, 0)

// timesByClass returns the sums of a histogram's points and of their exemplars, in
// µs, by size class.
func timesByClass(t *testing.T, ms []metricdata.Metrics, name string) (sums, exemplars map[string]float64) {
	t.Helper()
	sums, exemplars = make(map[string]float64), make(map[string]float64)
	for _, p := range metrictest.Data[metricdata.Histogram[float64]](t, ms, name).DataPoints {
		class := "none"
		if v, ok := p.Attributes.Value(semconv.TransferSizeClass); ok {
			class = v.AsString()
		}
		sums[class] += p.Sum * 1e6
		for _, e := range p.Exemplars {
			exemplars[class] += e.Value * 1e6
		}
	}
	return sums, exemplars
}

// Each transfer counts in the class of its size, including transfers with
// attributes and those of closed agents.
func TestTimesAreReportedBySizeClass(t *testing.T) {
	producer := agent.NewProducer(agent.WithSizeClasses())
	reader := sdkmetric.NewManualReader(sdkmetric.WithProducer(producer))
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	defer func() {
		if err := provider.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	sampled, _ := inSpan(t.Context(), trace.FlagsSampled)
	want := make(map[string]float64)
	for _, name := range []string{"a", "a", "b"} {
		a, err := agent.New(name, agent.WithProducer(producer))
		if err != nil {
			t.Fatal(err)
		}
		micros := time.Microsecond
		for bytes, class := range map[int64]string{
			-1: "le_64KiB", 64 << 10: "le_64KiB", 64<<10 + 1: "le_1MiB", 1 << 20: "le_1MiB",
			1<<20 + 1: "le_16MiB", 16 << 20: "le_16MiB", 16<<20 + 1: "gt_16MiB", 1 << 40: "gt_16MiB",
		} {
			micros *= 2
			a.Transfer(ctx, agent.Transmit, bytes, micros/2, micros)
			a.With(peer("p")).Transfer(ctx, agent.Receive, bytes, micros/2, micros)
			want[class] += 2 * float64(micros.Microseconds())
		}
		if name == "b" {
			a.Transfer(sampled, agent.Transmit, 1<<20, 100*us, 200*us)
			want["le_1MiB"] += 200
		}
		closeAgent(t, a)
	}
	posts := maps.Clone(want)
	for class := range posts {
		posts[class] /= 2
	}
	for _, wantExemplars := range []map[string]float64{{"le_1MiB": 200}, {}} { // each is exported once
		ms := collect(t, reader)
		durations, exemplars := timesByClass(t, ms, semconv.TransferDuration.Name)
		if d := cmp.Diff(want, durations, approximately); d != "" {
			t.Errorf("durations (-want +got)\n%s", d)
		}
		postDurations, _ := timesByClass(t, ms, semconv.TransferPostDuration.Name)
		if d := cmp.Diff(posts, postDurations, approximately); d != "" {
			t.Errorf("post durations (-want +got)\n%s", d)
		}
		if d := cmp.Diff(wantExemplars, exemplars, approximately); d != "" {
			t.Errorf("exemplars (-want +got)\n%s", d)
		}
	}
}
