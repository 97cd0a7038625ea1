// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/internal/scope"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// openMeasured opens a session whose metrics can be read.
func openMeasured(t *testing.T, opts ...Option) (*Session, sdkmetric.Reader) {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	// Turn off the SDK's limit to test the session's limits.
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithCardinalityLimit(0))
	return openTest(t, t.TempDir(), append([]Option{WithMeterProvider(provider)}, opts...)...), reader
}

func TestMetricsAreThoseOfSemconv(t *testing.T) {
	s, reader := openMeasured(t)
	recordAll(t, s, Packet{
		Operation: "expert_ffn", Device: CPU, DeviceTarget: IGPU, Memory: 1, Duration: 1, Err: textError("x"),
	})
	s.AddPromptTokens(t.Context(), 1)
	all := collect(t, reader)
	for _, want := range semconv.SplitInference() {
		i := slices.IndexFunc(all, func(m metricdata.Metrics) bool { return m.Name == want.Name })
		if i < 0 {
			t.Errorf("%s is missing", want.Name)
			continue
		}
		if all[i].Unit != want.Unit || all[i].Description != want.Description {
			t.Errorf("%s has unit %q and description %q", want.Name, all[i].Unit, all[i].Description)
		}
		keys, kind := shape(t, all[i])
		if kind != want.Kind {
			t.Errorf("%s is a %s, want a %s", want.Name, kind, want.Kind)
		}
		for _, key := range keys {
			if !slices.Contains(want.Attributes, key) && !slices.Contains(want.Conditional, key) {
				t.Errorf("%s has the attribute %s", want.Name, key)
			}
		}
		for _, key := range want.Attributes {
			if !slices.Contains(keys, key) {
				t.Errorf("%s doesn't have the attribute %s", want.Name, key)
			}
		}
	}
	if len(all) != len(semconv.SplitInference()) {
		t.Errorf("%d metrics", len(all))
	}
}

// shape returns the kind of a metric and the attributes of its first point.
func shape(t *testing.T, m metricdata.Metrics) (keys []string, kind semconv.Kind) {
	t.Helper()
	var attrs attribute.Set
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		if data.IsMonotonic {
			kind = semconv.Counter
		}
		attrs = data.DataPoints[0].Attributes
	case metricdata.Histogram[float64]:
		kind = semconv.Histogram
		attrs = data.DataPoints[0].Attributes
		want := semconv.SplitInferenceDurationBounds()
		if m.Unit == "By" {
			want = semconv.SizeBounds()
		}
		equal(t, want, data.DataPoints[0].Bounds)
	}
	for _, kv := range attrs.ToSlice() {
		keys = append(keys, string(kv.Key))
	}
	return keys, kind
}

func TestPacketsAndTokensAreCountedByAttributes(t *testing.T) {
	s, reader := openMeasured(t)
	recordAll(
		t, s,
		Packet{Operation: "expert_ffn", Device: IGPU, Layer: 3, Duration: 2 * time.Millisecond, Memory: 1 << 20},
		Packet{Operation: "expert_ffn", Device: IGPU, Layer: 3, Duration: 4 * time.Millisecond, Memory: 3 << 20},
		Packet{Operation: "expert_ffn", Device: CPU, DeviceTarget: IGPU, Layer: 4, Duration: time.Millisecond},
		Packet{Operation: "lm_head", Device: CPU, DeviceTarget: "auto", Layer: 33, Duration: time.Second, Err: textError("no memory")},
	)
	s.AddPromptTokens(t.Context(), 7)
	s.AddGeneratedTokens(t.Context(), 2)
	s.AddGeneratedTokens(t.Context(), 3)
	all := collect(t, reader)

	equal(t, map[string]int64{
		"splitinfer.device.name=igpu splitinfer.worker=igpu_expert_ffn_layer_3":                 2,
		"splitinfer.device.name=cpu splitinfer.worker=cpu_expert_ffn_layer_4":                   1,
		"error.type=session.textError splitinfer.device.name=cpu splitinfer.worker=cpu_lm_head": 1,
	}, sums(t, all, semconv.Packets))
	equal(t, map[string]int64{
		"splitinfer.layer=3 splitinfer.operation=expert_ffn": 2,
		"splitinfer.layer=4 splitinfer.operation=expert_ffn": 1,
	}, sums(t, all, semconv.ExpertSelections))
	equal(t, map[string]int64{
		"splitinfer.device.name=cpu splitinfer.device.requested_name=igpu": 1,
	}, sums(t, all, semconv.PacketFallbacks))
	equal(t, map[string]int64{
		"splitinfer.token.type=prompt": 7, "splitinfer.token.type=generated": 5,
	}, sums(t, all, semconv.Tokens))
	equal(t, map[string]distribution{
		"splitinfer.device.name=igpu splitinfer.operation=expert_ffn":                          {2, 0.006},
		"splitinfer.device.name=cpu splitinfer.operation=expert_ffn":                           {1, 0.001},
		"error.type=session.textError splitinfer.device.name=cpu splitinfer.operation=lm_head": {1, 1},
	}, distributions(t, all, semconv.PacketDuration))
	// Memory of 0 is unknown.
	equal(t, map[string]distribution{
		"splitinfer.device.name=igpu": {2, 4 << 20},
	}, distributions(t, all, semconv.PacketMemory))
}

func TestExpertSelectionsAreCountedByExpert(t *testing.T) {
	s, reader := openMeasured(t)
	fail := textError("out of memory")
	recordAll(
		t, s,
		Packet{Operation: "expert_ffn", Device: IGPU, Layer: 3, Expert: "7"},
		Packet{Operation: "expert_ffn", Device: CPU, Layer: 3, Expert: "7"},
		Packet{Operation: "expert_ffn", Device: IGPU, Layer: 3, Expert: "0", Err: fail},
		Packet{Operation: "expert_ffn", Device: IGPU, Layer: 4, Expert: "7"},
		Packet{Operation: "expert_ffn", Device: IGPU, Layer: 4}, // unknown expert
		Packet{Operation: "moe", Device: IGPU, Layer: 4, Expert: "no\xffUTF-8"},
		Packet{Operation: "attention_qkv_proj", Device: IGPU, Layer: 4},
	)
	equal(t, map[string]int64{
		"splitinfer.expert=7 splitinfer.layer=3 splitinfer.operation=expert_ffn":      2,
		"splitinfer.expert=0 splitinfer.layer=3 splitinfer.operation=expert_ffn":      1,
		"splitinfer.expert=7 splitinfer.layer=4 splitinfer.operation=expert_ffn":      1,
		"splitinfer.layer=4 splitinfer.operation=expert_ffn":                          1,
		"splitinfer.expert=no\uFFFDUTF-8 splitinfer.layer=4 splitinfer.operation=moe": 1,
	}, sums(t, collect(t, reader), semconv.ExpertSelections))
}

func TestExpertsBeyondTheLimitCountTogether(t *testing.T) {
	s, reader := openMeasured(t)
	const extra = 10
	for i := range expertLimit + extra {
		recordAll(t, s, Packet{Operation: "expert_ffn", Device: IGPU, Layer: i % 8, Expert: fmt.Sprint(i)})
	}
	got := sums(t, collect(t, reader), semconv.ExpertSelections)
	if len(got) != expertLimit+1 || got["otel.metric.overflow=true"] != extra {
		t.Errorf("%d points, %d packets in the overflow point", len(got), got["otel.metric.overflow=true"])
	}
}

func TestWorkerOfThePacketIsInItsMetrics(t *testing.T) {
	s, reader := openMeasured(t)
	recordAll(
		t, s,
		Packet{Operation: "expert_ffn", Device: IGPU, Worker: "queue-2"},
		Packet{Operation: "expert_ffn", Device: IGPU},
	)
	equal(t, map[string]int64{
		"splitinfer.device.name=igpu splitinfer.worker=queue-2":                 1,
		"splitinfer.device.name=igpu splitinfer.worker=igpu_expert_ffn_layer_0": 1,
	}, sums(t, collect(t, reader), semconv.Packets))
}

// Packet.Attributes never replace the attributes of a metric.
func TestPacketAttributesAreOnAllItsDataPoints(t *testing.T) {
	s, reader := openMeasured(t)
	prefill := attribute.NewSet(attribute.String("phase", "prefill"), attribute.String(semconv.DeviceName, "mine"))
	decode := attribute.NewSet(attribute.String("phase", "decode"))
	packet := Packet{Operation: "expert_ffn", Device: CPU, DeviceTarget: IGPU, Memory: 1, Duration: time.Second}
	for _, set := range []attribute.Set{prefill, decode, decode, {}} {
		packet.Attributes = set
		recordAll(t, s, packet)
	}
	for range 2 { // an equal set is the same set
		packet.Attributes = attribute.NewSet(attribute.String("phase", "decode"))
		recordAll(t, s, packet)
	}
	all := collect(t, reader)
	equal(t, map[string]int64{
		"phase=prefill splitinfer.device.name=cpu splitinfer.worker=cpu_expert_ffn_layer_0": 1,
		"phase=decode splitinfer.device.name=cpu splitinfer.worker=cpu_expert_ffn_layer_0":  4,
		"splitinfer.device.name=cpu splitinfer.worker=cpu_expert_ffn_layer_0":               1,
	}, sums(t, all, semconv.Packets))
	equal(t, map[string]distribution{
		"phase=prefill splitinfer.device.name=cpu splitinfer.operation=expert_ffn": {1, 1},
		"phase=decode splitinfer.device.name=cpu splitinfer.operation=expert_ffn":  {4, 4},
		"splitinfer.device.name=cpu splitinfer.operation=expert_ffn":               {1, 1},
	}, distributions(t, all, semconv.PacketDuration))
	equal(t, map[string]distribution{
		"phase=prefill splitinfer.device.name=cpu": {1, 1}, "phase=decode splitinfer.device.name=cpu": {4, 4}, "splitinfer.device.name=cpu": {1, 1},
	}, distributions(t, all, semconv.PacketMemory))
	equal(t, map[string]int64{
		"phase=prefill splitinfer.device.name=cpu splitinfer.device.requested_name=igpu": 1,
		"phase=decode splitinfer.device.name=cpu splitinfer.device.requested_name=igpu":  4,
		"splitinfer.device.name=cpu splitinfer.device.requested_name=igpu":               1,
	}, sums(t, all, semconv.PacketFallbacks))
	equal(t, map[string]int64{
		// This metric has no device attribute, so the packet's own is kept.
		"phase=prefill splitinfer.device.name=mine splitinfer.layer=0 splitinfer.operation=expert_ffn": 1,
		"phase=decode splitinfer.layer=0 splitinfer.operation=expert_ffn":                              4,
		"splitinfer.layer=0 splitinfer.operation=expert_ffn":                                           1,
	}, sums(t, all, semconv.ExpertSelections))
}

func TestAttributeSetsBeyondTheLimitCountTogether(t *testing.T) {
	s, reader := openMeasured(t)
	const extra = 10
	for i := range attributesLimit + extra {
		recordAll(t, s, Packet{
			Operation: "expert_ffn", Device: CPU, DeviceTarget: IGPU, Memory: 1,
			Attributes: attribute.NewSet(attribute.Int("request", i)),
		})
	}
	all := collect(t, reader)
	for _, m := range []semconv.Metric{semconv.PacketDuration, semconv.PacketMemory} {
		if got := distributions(t, all, m); len(got) != attributesLimit+1 || got["otel.metric.overflow=true"].count != extra {
			t.Errorf("%s has %d points", m.Name, len(got))
		}
	}
	for _, m := range []semconv.Metric{semconv.Packets, semconv.PacketFallbacks, semconv.ExpertSelections} {
		if got := sums(t, all, m); len(got) != attributesLimit+1 || got["otel.metric.overflow=true"] != extra {
			t.Errorf("%s has %d points", m.Name, len(got))
		}
	}
}

func TestWithLayerOnDurationAddsTheLayer(t *testing.T) {
	s, reader := openMeasured(t, WithLayerOnDuration())
	recordAll(t, s, Packet{Operation: "lm_head", Device: CPU, Layer: 33}, Packet{Operation: "lm_head", Device: CPU, Layer: 34})
	equal(t, map[string]distribution{
		"splitinfer.device.name=cpu splitinfer.layer=33 splitinfer.operation=lm_head": {1, 0},
		"splitinfer.device.name=cpu splitinfer.layer=34 splitinfer.operation=lm_head": {1, 0},
	}, distributions(t, collect(t, reader), semconv.PacketDuration))
}

func TestDefaultProviderIsTheGlobalOne(t *testing.T) {
	before := otel.GetMeterProvider()
	t.Cleanup(func() { otel.SetMeterProvider(before) })
	reader := sdkmetric.NewManualReader()
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	s := openTest(t, t.TempDir(), WithMeterProvider(nil))
	recordAll(t, s, Packet{Operation: "a", Device: CPU})
	if got := packetsCounted(t, reader); got != 1 {
		t.Errorf("%d packets", got)
	}
}

func TestErrorTypeNeverContainsTheErrorText(t *testing.T) {
	for _, c := range []struct {
		packet Packet
		want   string
	}{
		{Packet{Err: textError("a")}, "session.textError"},
		{Packet{Err: fmt.Errorf("layer 5: %w", textError("a"))}, "session.textError"},
		{Packet{Err: errors.New("a")}, "*errors.errorString"},
		{Packet{Err: fmt.Errorf("layer 5: %w", os.ErrDeadlineExceeded)}, "*poll.DeadlineExceededError"},
		{Packet{Err: typedError{}}, "device_lost"},
		{Packet{Err: errors.New("a"), ErrorType: "out_of_memory"}, "out_of_memory"},
		{Packet{Err: errors.New("a"), ErrorType: "no\xffUTF-8"}, "no\uFFFDUTF-8"},
	} {
		s, reader := openMeasured(t)
		c.packet.Operation, c.packet.Device = "embedding", CPU
		recordAll(t, s, c.packet)
		equal(t, map[string]int64{
			"error.type=" + c.want + " splitinfer.device.name=cpu splitinfer.worker=cpu_embedding": 1,
		}, sums(t, collect(t, reader), semconv.Packets))
	}
}

type typedError struct{}

func (typedError) Error() string     { return "level zero: device lost" }
func (typedError) ErrorType() string { return "device_lost" }

func TestOperationsBeyondTheLimitCountTogether(t *testing.T) {
	s, reader := openMeasured(t)
	for i := range operationLimit - 2 { // room for two more
		recordAll(t, s, Packet{Operation: fmt.Sprint("op_", i), Device: IGPU})
	}
	for i := range 10 {
		recordAll(t, s, Packet{Operation: fmt.Sprintf("expert_%d", i), Device: CPU, Memory: 1, Duration: time.Second})
	}
	recordAll(t, s, Packet{Operation: "expert_1", Device: CPU, Memory: 1, Duration: time.Second}) // within the limit
	all := collect(t, reader)
	equal(t, map[string]distribution{
		"splitinfer.device.name=cpu splitinfer.operation=expert_0": {1, 1},
		"splitinfer.device.name=cpu splitinfer.operation=expert_1": {2, 2},
		"otel.metric.overflow=true":                                {8, 8},
	}, withoutIGPU(distributions(t, all, semconv.PacketDuration)))
	equal(t, map[string]int64{
		"splitinfer.device.name=cpu splitinfer.worker=cpu_expert_0": 1,
		"splitinfer.device.name=cpu splitinfer.worker=cpu_expert_1": 2,
		"otel.metric.overflow=true":                                 8,
	}, withoutIGPU(sums(t, all, semconv.Packets)))
	equal(t, map[string]int64{
		"splitinfer.layer=0 splitinfer.operation=expert_0": 1,
		"splitinfer.layer=0 splitinfer.operation=expert_1": 2,
		"otel.metric.overflow=true":                        8,
	}, sums(t, all, semconv.ExpertSelections))
	equal(t, map[string]distribution{"splitinfer.device.name=cpu": {11, 11}}, distributions(t, all, semconv.PacketMemory))

	sum := s.Summary()
	equal(t, []string{"expert_0", "expert_1", "_OTHER"}, operationNames(sum.Operations[operationLimit-2:]))
	equal(t, Selections{{"expert_0_layer_0", 1}, {"expert_1_layer_0", 2}, {"_OTHER", 8}}, sum.ExpertSelections)
	equal(t, int64(8), sum.Operations[operationLimit].Count)
	if got := rowsOf(t, read(t, s.files.csv))[operationLimit+7].Operation; got != "expert_9" {
		t.Errorf("the CSV has %s", got)
	}
}

func withoutIGPU[V any](points map[string]V) map[string]V {
	maps.DeleteFunc(points, func(key string, _ V) bool { return strings.Contains(key, "splitinfer.device.name=igpu") })
	return points
}

func TestAllLimitsKeepTheTotals(t *testing.T) {
	s, reader := openMeasured(t, WithLayerOnDuration())
	const layers, others = 2 * routeLimit, 200
	for i := range layers {
		recordAll(t, s, Packet{Operation: "expert_ffn", Device: IGPU, Layer: i})
	}
	for i := range others {
		name := fmt.Sprint(i)
		recordAll(t, s, Packet{Operation: "lm_head", Device: name, DeviceTarget: "npu", Memory: 1, Err: errors.New(name), ErrorType: name})
	}
	for i := range others {
		recordAll(t, s, Packet{Operation: "expert_ffn", Device: IGPU, Err: errors.New("x"), ErrorType: fmt.Sprint(i)})
	}
	all := collect(t, reader)
	for metric, most := range map[string]int{
		semconv.PacketDuration.Name:   routeLimit + deviceLimit + errorTypeLimit + 2,
		semconv.Packets.Name:          routeLimit + deviceLimit + errorTypeLimit + 2,
		semconv.ExpertSelections.Name: routeLimit + 1,
		semconv.PacketMemory.Name:     deviceLimit + 1,
		semconv.PacketFallbacks.Name:  fallbackLimit + 1,
	} {
		if got := pointsOf(t, all, metric); got > most {
			t.Errorf("%s has %d points, want %d or fewer", metric, got, most)
		}
	}
	// The overflow points include everything else.
	const total = layers + 2*others
	if got := packetsCounted(t, reader); got != total {
		t.Errorf("%d packets counted, want %d", got, total)
	}
	var durations int64
	for _, d := range distributions(t, all, semconv.PacketDuration) {
		durations += int64(d.count)
	}
	if durations != total {
		t.Errorf("%d durations, want %d", durations, total)
	}
	if got := len(s.Summary().ExpertSelections); got != selectionLimit+1 {
		t.Errorf("%d selections in the summary", got)
	}
	if got := int64(len(rowsOf(t, read(t, s.files.csv)))); got != total {
		t.Errorf("%d rows, want %d", got, total)
	}
}

func TestSessionWritesFilesIfTheProviderRejectsInstruments(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, WithName("s"), WithMeterProvider(rejecting{}))
	if !errors.Is(err, errRejected) {
		t.Errorf("open: %v", err)
	}
	s.AddPromptTokens(t.Context(), 1)
	recordAll(t, s, Packet{Operation: "expert_ffn", Device: CPU, DeviceTarget: IGPU, Memory: 1})
	closeTest(t, s)
	if got := len(rowsOf(t, read(t, dir, "s.csv"))); got != 1 {
		t.Errorf("%d rows", got)
	}
}

var errRejected = errors.New("rejected")

type rejecting struct{ noop.MeterProvider }

func (rejecting) Meter(string, ...metric.MeterOption) metric.Meter { return rejectingMeter{} }

type rejectingMeter struct{ noop.Meter }

func (rejectingMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return nil, errRejected
}

func (rejectingMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return nil, errRejected
}

// sums returns the points of a counter by attributes.
func sums(t *testing.T, all []metricdata.Metrics, m semconv.Metric) map[string]int64 {
	t.Helper()
	got := map[string]int64{}
	for _, p := range find[metricdata.Sum[int64]](t, all, m.Name).DataPoints {
		got[attributes(p.Attributes)] = p.Value
	}
	return got
}

type distribution struct {
	count uint64
	sum   float64
}

// Equal allows rounding errors in sums.
func (d distribution) Equal(o distribution) bool {
	return d.count == o.count && d.sum-o.sum < 1e-9 && o.sum-d.sum < 1e-9
}

// distributions returns the points of a histogram by attributes.
func distributions(t *testing.T, all []metricdata.Metrics, m semconv.Metric) map[string]distribution {
	t.Helper()
	got := map[string]distribution{}
	for _, p := range find[metricdata.Histogram[float64]](t, all, m.Name).DataPoints {
		got[attributes(p.Attributes)] = distribution{p.Count, p.Sum}
	}
	return got
}

func attributes(set attribute.Set) string {
	var text string
	for i, kv := range set.ToSlice() {
		if i > 0 {
			text += " "
		}
		text += string(kv.Key) + "=" + kv.Value.String()
	}
	return text
}

func pointsOf(t *testing.T, all []metricdata.Metrics, name string) int {
	t.Helper()
	i := slices.IndexFunc(all, func(m metricdata.Metrics) bool { return m.Name == name })
	switch data := all[i].Data.(type) {
	case metricdata.Sum[int64]:
		return len(data.DataPoints)
	case metricdata.Histogram[float64]:
		return len(data.DataPoints)
	}
	return 0
}

func packetsCounted(t *testing.T, reader sdkmetric.Reader) int64 {
	t.Helper()
	var n int64
	for _, point := range find[metricdata.Sum[int64]](t, collect(t, reader), semconv.Packets.Name).DataPoints {
		n += point.Value
	}
	return n
}

func collect(t *testing.T, reader sdkmetric.Reader) []metricdata.Metrics {
	t.Helper()
	var rm metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &rm); err != nil {
		t.Fatal(err)
	}
	if len(rm.ScopeMetrics) != 1 || rm.ScopeMetrics[0].Scope.Name != ScopeName || rm.ScopeMetrics[0].Scope.Version != scope.Version() {
		t.Fatalf("scopes are %+v", rm.ScopeMetrics)
	}
	return rm.ScopeMetrics[0].Metrics
}

func find[D metricdata.Aggregation](t *testing.T, all []metricdata.Metrics, name string) (data D) {
	t.Helper()
	for _, m := range all {
		if m.Name == name {
			var ok bool
			if data, ok = m.Data.(D); !ok {
				t.Fatalf("%s is a %T", name, m.Data)
			}
			return data
		}
	}
	t.Fatalf("%s is missing", name)
	return data
}
