// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"strings"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// openMeasured opens a session whose metrics can be read.
func openMeasured(t *testing.T, opts ...Option) (*Session, sdkmetric.Reader) {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	// Without a limit of the SDK, a session reports everything.
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithCardinalityLimit(0))
	return openTest(t, t.TempDir(), append(opts, WithMeterProvider(provider))...), reader
}

// values returns the values of counters and the counts of histograms, by name and
// attributes, without the prefix splitinfer.
func values(t *testing.T, reader sdkmetric.Reader) map[string]float64 {
	t.Helper()
	got := make(map[string]float64)
	for key, v := range metrictest.Values(metrictest.Collect(t, reader)) {
		got[strings.ReplaceAll(key, "splitinfer.", "")] = v
	}
	return got
}

func packetsCounted(t *testing.T, reader sdkmetric.Reader) (n int64) {
	t.Helper()
	for key, v := range values(t, reader) {
		if strings.HasPrefix(key, "packets{") {
			n += int64(v)
		}
	}
	return n
}

func TestPacketsAndTokensAreCountedByAttributes(t *testing.T) {
	s, reader := openMeasured(t)
	recordAll(
		t, s,
		Packet{Operation: "expert_ffn", Device: IGPU, Layer: 3, Duration: 2 * time.Millisecond, Memory: 1 << 20, Expert: "7"},
		Packet{Operation: "expert_ffn", Device: IGPU, Layer: 3, Duration: 4 * time.Millisecond, Memory: 3 << 20, Expert: "7"},
		Packet{Operation: "expert_ffn", Device: CPU, DeviceTarget: IGPU, Layer: 4, Duration: time.Millisecond, Worker: "queue-2"},
		Packet{Operation: "moe", Device: CPU, Expert: "no\xffUTF-8"}, // unknown memory
		Packet{Operation: "lm_head", Device: CPU, DeviceTarget: "auto", Layer: 33, Duration: time.Second, Err: textError("no memory")},
	)
	s.AddPromptTokens(t.Context(), 7)
	s.AddGeneratedTokens(t.Context(), 2)
	s.AddGeneratedTokens(t.Context(), 3)
	equal(t, map[string]float64{
		"packets{device.name=igpu,worker=igpu_expert_ffn_layer_3}":                 2,
		"packets{device.name=cpu,worker=queue-2}":                                  1,
		"packets{device.name=cpu,worker=cpu_moe}":                                  1,
		"packets{error.type=session.textError,device.name=cpu,worker=cpu_lm_head}": 1,

		"packet.duration{device.name=igpu,operation=expert_ffn}":                          2,
		"packet.duration{device.name=cpu,operation=expert_ffn}":                           1,
		"packet.duration{device.name=cpu,operation=moe}":                                  1,
		"packet.duration{error.type=session.textError,device.name=cpu,operation=lm_head}": 1,

		"packet.memory{device.name=igpu}":                               2,
		"packet.fallbacks{device.name=cpu,device.requested_name=igpu}":  1,
		"expert.selections{expert=7,layer=3,operation=expert_ffn}":      2,
		"expert.selections{layer=4,operation=expert_ffn}":               1,
		"expert.selections{expert=no\uFFFDUTF-8,layer=0,operation=moe}": 1,
		"tokens{token.type=prompt}":                                     7,
		"tokens{token.type=generated}":                                  5,
	}, values(t, reader))

	all := metrictest.Collect(t, reader)
	for name, want := range map[string]float64{semconv.PacketDuration.Name: 1.007, semconv.PacketMemory.Name: 4 << 20} {
		sum := 0.0
		for _, p := range metrictest.Data[metricdata.Histogram[float64]](t, all, name).DataPoints {
			sum += p.Sum
		}
		if sum < want-1e-9 || sum > want+1e-9 {
			t.Errorf("the sum of %s is %v, want %v", name, sum, want)
		}
	}
}

// Beyond the limit, the summary combines operations and expert selections, and so does the
// summary that Recover rebuilds. The CSV has all names.
func TestGroupsBeyondTheLimitCountTogetherInTheSummary(t *testing.T) {
	s := openTest(t, t.TempDir())
	for i := range groupLimit + 3 {
		recordAll(t, s, Packet{Operation: fmt.Sprint("expert ", i), Device: CPU})
	}
	recordAll(t, s, Packet{Operation: "expert 1", Device: CPU}) // within the limit
	sum := s.Summary()
	equal(t, groupLimit+1, len(sum.Operations))
	equal(t, groupLimit+1, len(sum.ExpertSelections))
	equal(t, []int64{2, 3, 3}, []int64{sum.Operations["expert 1"].Count, sum.Operations["_OTHER"].Count, sum.ExpertSelections["_OTHER"]})
	equal(t, fmt.Sprint("expert ", groupLimit), rowsOf(t, read(t, s.sum.CSVLog))[groupLimit].Operation)

	crash(t, s)
	recovered, err := Recover(s.sum.CSVLog, false)
	must.OK(t, err)
	equal(t, sum.Operations, recovered.Summary.Operations)
	equal(t, sum.ExpertSelections, recovered.Summary.ExpertSelections)
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
	equal(t, pointLimit, len(s.points))
	got := values(t, reader)
	if n := got[fmt.Sprintf("expert.selections{expert=%d,layer=0,operation=expert_ffn}", experts-1)]; n != 2 || len(got) < experts {
		t.Errorf("%d series, %v of the last expert", len(got), n)
	}
}
