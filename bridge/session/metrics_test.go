// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// openMeasured opens a session whose metrics can be read.
func openMeasured(t *testing.T, opts ...Option) (*Session, sdkmetric.Reader) {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	// Without a limit of the SDK, a session reports everything.
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithCardinalityLimit(0))
	return openTest(t, t.TempDir(), append([]Option{WithMeterProvider(provider)}, opts...)...), reader
}

func TestPacketsAndTokensAreCountedByAttributes(t *testing.T) {
	s, reader := openMeasured(t)
	recordAll(
		t, s,
		Packet{Operation: "expert_ffn", Device: IGPU, Layer: 3, Duration: 2 * time.Millisecond, Memory: 1 << 20},
		Packet{Operation: "expert_ffn", Device: IGPU, Layer: 3, Duration: 4 * time.Millisecond, Memory: 3 << 20},
		Packet{Operation: "expert_ffn", Device: CPU, DeviceTarget: IGPU, Layer: 4, Duration: time.Millisecond, Worker: "queue-2"},
		Packet{Operation: "lm_head", Device: CPU, DeviceTarget: "auto", Layer: 33, Duration: time.Second, Err: textError("no memory")},
	)
	s.AddPromptTokens(t.Context(), 7)
	s.AddGeneratedTokens(t.Context(), 2)
	s.AddGeneratedTokens(t.Context(), 3)
	all := collect(t, reader)

	equal(t, map[string]int64{
		"splitinfer.device.name=igpu,splitinfer.worker=igpu_expert_ffn_layer_3":                 2,
		"splitinfer.device.name=cpu,splitinfer.worker=queue-2":                                  1,
		"error.type=session.textError,splitinfer.device.name=cpu,splitinfer.worker=cpu_lm_head": 1,
	}, sums(t, all, semconv.Packets))
	equal(t, map[string]int64{
		"splitinfer.layer=3,splitinfer.operation=expert_ffn": 2,
		"splitinfer.layer=4,splitinfer.operation=expert_ffn": 1,
	}, sums(t, all, semconv.ExpertSelections))
	equal(t, map[string]int64{
		"splitinfer.device.name=cpu,splitinfer.device.requested_name=igpu": 1,
	}, sums(t, all, semconv.PacketFallbacks))
	equal(t, map[string]int64{
		"splitinfer.token.type=prompt": 7, "splitinfer.token.type=generated": 5,
	}, sums(t, all, semconv.Tokens))
	equal(t, map[string]distribution{
		"splitinfer.device.name=igpu,splitinfer.operation=expert_ffn":                          {2, 0.006},
		"splitinfer.device.name=cpu,splitinfer.operation=expert_ffn":                           {1, 0.001},
		"error.type=session.textError,splitinfer.device.name=cpu,splitinfer.operation=lm_head": {1, 1},
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
		"splitinfer.expert=7,splitinfer.layer=3,splitinfer.operation=expert_ffn":      2,
		"splitinfer.expert=0,splitinfer.layer=3,splitinfer.operation=expert_ffn":      1,
		"splitinfer.expert=7,splitinfer.layer=4,splitinfer.operation=expert_ffn":      1,
		"splitinfer.layer=4,splitinfer.operation=expert_ffn":                          1,
		"splitinfer.expert=no\uFFFDUTF-8,splitinfer.layer=4,splitinfer.operation=moe": 1,
	}, sums(t, collect(t, reader), semconv.ExpertSelections))
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
		"phase=prefill,splitinfer.device.name=cpu,splitinfer.worker=cpu_expert_ffn_layer_0": 1,
		"phase=decode,splitinfer.device.name=cpu,splitinfer.worker=cpu_expert_ffn_layer_0":  4,
		"splitinfer.device.name=cpu,splitinfer.worker=cpu_expert_ffn_layer_0":               1,
	}, sums(t, all, semconv.Packets))
	equal(t, map[string]distribution{
		"phase=prefill,splitinfer.device.name=cpu,splitinfer.operation=expert_ffn": {1, 1},
		"phase=decode,splitinfer.device.name=cpu,splitinfer.operation=expert_ffn":  {4, 4},
		"splitinfer.device.name=cpu,splitinfer.operation=expert_ffn":               {1, 1},
	}, distributions(t, all, semconv.PacketDuration))
	equal(t, map[string]distribution{
		"phase=prefill,splitinfer.device.name=cpu": {1, 1}, "phase=decode,splitinfer.device.name=cpu": {4, 4}, "splitinfer.device.name=cpu": {1, 1},
	}, distributions(t, all, semconv.PacketMemory))
	equal(t, map[string]int64{
		"phase=prefill,splitinfer.device.name=cpu,splitinfer.device.requested_name=igpu": 1,
		"phase=decode,splitinfer.device.name=cpu,splitinfer.device.requested_name=igpu":  4,
		"splitinfer.device.name=cpu,splitinfer.device.requested_name=igpu":               1,
	}, sums(t, all, semconv.PacketFallbacks))
	equal(t, map[string]int64{
		// This metric has no device attribute, so the packet's own is kept.
		"phase=prefill,splitinfer.device.name=mine,splitinfer.layer=0,splitinfer.operation=expert_ffn": 1,
		"phase=decode,splitinfer.layer=0,splitinfer.operation=expert_ffn":                              4,
		"splitinfer.layer=0,splitinfer.operation=expert_ffn":                                           1,
	}, sums(t, all, semconv.ExpertSelections))
}

func TestWithLayerOnDurationAddsTheLayer(t *testing.T) {
	s, reader := openMeasured(t, WithLayerOnDuration())
	recordAll(t, s, Packet{Operation: "lm_head", Device: CPU, Layer: 33}, Packet{Operation: "lm_head", Device: CPU, Layer: 34})
	equal(t, map[string]distribution{
		"splitinfer.device.name=cpu,splitinfer.layer=33,splitinfer.operation=lm_head": {1, 0},
		"splitinfer.device.name=cpu,splitinfer.layer=34,splitinfer.operation=lm_head": {1, 0},
	}, distributions(t, collect(t, reader), semconv.PacketDuration))
}

func TestErrorTypeNeverContainsTheErrorText(t *testing.T) {
	for _, c := range []struct {
		packet Packet
		want   string
	}{
		{Packet{Err: textError("a")}, "session.textError"},
		{Packet{Err: fmt.Errorf("layer 5: %w", os.ErrDeadlineExceeded)}, "*poll.DeadlineExceededError"},
		{Packet{Err: typedError{}}, "device_lost"},
		{Packet{Err: errors.New("a"), ErrorType: "no\xffUTF-8"}, "no\uFFFDUTF-8"},
	} {
		s, reader := openMeasured(t)
		c.packet.Operation, c.packet.Device = "embedding", CPU
		recordAll(t, s, c.packet)
		equal(t, map[string]int64{
			"error.type=" + c.want + ",splitinfer.device.name=cpu,splitinfer.worker=cpu_embedding": 1,
		}, sums(t, collect(t, reader), semconv.Packets))
	}
}

type typedError struct{}

func (typedError) Error() string     { return "level zero: device lost" }
func (typedError) ErrorType() string { return "device_lost" }

func TestOperationsBeyondTheLimitCountTogetherInTheSummary(t *testing.T) {
	s := openTest(t, t.TempDir())
	for i := range operationLimit - 2 { // room for two more
		recordAll(t, s, Packet{Operation: fmt.Sprint("op_", i), Device: IGPU})
	}
	for i := range 10 {
		recordAll(t, s, Packet{Operation: fmt.Sprintf("expert_%d", i), Device: CPU})
	}
	recordAll(t, s, Packet{Operation: "expert_1", Device: CPU}) // within the limit
	sum := s.Summary()
	equal(t, operationLimit+1, len(sum.Operations))
	equal(t, int64(2), sum.Operations["expert_1"].Count)
	equal(t, int64(8), sum.Operations["_OTHER"].Count)
	equal(t, int64(1), sum.ExpertSelections["expert_9_layer_0"])
	if got := rowsOf(t, read(t, s.files.csv))[operationLimit+7].Operation; got != "expert_9" {
		t.Errorf("the CSV has %s", got)
	}
}

func TestExpertSelectionsBeyondTheLimitCountTogetherInTheSummary(t *testing.T) {
	s := openTest(t, t.TempDir())
	for i := range selectionLimit + 3 {
		recordAll(t, s, Packet{Operation: "expert_ffn", Layer: i, Device: CPU})
	}
	sum := s.Summary().ExpertSelections
	if len(sum) != selectionLimit+1 || sum["_OTHER"] != 3 {
		t.Errorf("%d selections, %d of others", len(sum), sum["_OTHER"])
	}
}

// What a session stores is limited, but not what it reports.
func TestPacketsBeyondTheStoredPointsAreReported(t *testing.T) {
	s, reader := openMeasured(t)
	const experts = pointLimit + 10
	for range 2 {
		for i := range experts {
			recordAll(t, s, Packet{Operation: "expert_ffn", Device: IGPU, Expert: fmt.Sprint(i)})
		}
	}
	if len(s.points) != pointLimit {
		t.Errorf("points of %d kinds are stored", len(s.points))
	}
	if got := sums(t, collect(t, reader), semconv.ExpertSelections); len(got) != experts {
		t.Errorf("%d experts", len(got))
	}
}

// sums returns the points of a counter by attributes.
func sums(t *testing.T, all []metricdata.Metrics, m semconv.Metric) map[string]int64 {
	t.Helper()
	got := map[string]int64{}
	for _, p := range metrictest.Data[metricdata.Sum[int64]](t, all, m.Name).DataPoints {
		got[p.Attributes.Encoded(attribute.DefaultEncoder())] = p.Value
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
	for _, p := range metrictest.Data[metricdata.Histogram[float64]](t, all, m.Name).DataPoints {
		got[p.Attributes.Encoded(attribute.DefaultEncoder())] = distribution{p.Count, p.Sum}
	}
	return got
}

func packetsCounted(t *testing.T, reader sdkmetric.Reader) (n int64) {
	t.Helper()
	for _, v := range sums(t, collect(t, reader), semconv.Packets) {
		n += v
	}
	return n
}

func collect(t *testing.T, reader sdkmetric.Reader) []metricdata.Metrics {
	t.Helper()
	return metrictest.Collect(t, reader)
}
