//go:build linux

package dashboards

import (
	"bytes"
	"net/http"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// past has the backend hold what was reported within the last half hour:
//
//   - gone-0, which moved data on this host and ended a quarter of an hour ago;
//   - silent-0, which was writing on a host of which nothing came since;
//   - taken-0, from whose ring somebody else reads.
func (b backend) past(t *testing.T) {
	t.Helper()
	md := pmetric.NewMetrics()
	gone := reports(md, host, "gone-0", -25*time.Minute, -11*time.Minute)
	gone("nixl.telemetry.ring.capacity", "{event}", func(time.Duration) float64 { return 4096 })
	gone("nixl.transfer.requests", "{request}", func(ago time.Duration) float64 { return min(ago, -16*time.Minute).Seconds() + 3600 })
	silent := reports(md, "silent", "silent-0", -20*time.Minute, -10*time.Minute)
	silent("nixl.telemetry.ring.capacity", "{event}", func(time.Duration) float64 { return 4096 })
	silent("nixl.telemetry.ring.utilization", "1", func(time.Duration) float64 { return 0.5 })
	taken := reports(md, host, "taken-0", -4*time.Minute, 0)
	taken("nixl.telemetry.ring.foreign_reads", "{read}", func(ago time.Duration) float64 { return ago.Minutes() + 4 })

	text, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.otlp+"/v1/metrics", bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		t.Fatalf("%s: %s", b.name, response.Status)
	}
}

// reports adds metrics of an agent, with a point for each 10 s of some time
// before now.
func reports(md pmetric.Metrics, host, agent string, from, to time.Duration) func(name, unit string, value func(time.Duration) float64) {
	now := time.Now()
	rm := md.ResourceMetrics().AppendEmpty()
	for k, v := range map[string]string{
		"service.name": "nixl", "host.name": host, "nixl.agent.name": agent, "service.instance.id": host + agent,
	} {
		rm.Resource().Attributes().PutStr(k, v)
	}
	ms := rm.ScopeMetrics().AppendEmpty().Metrics()
	return func(name, unit string, value func(time.Duration) float64) {
		m := ms.AppendEmpty()
		m.SetName(name)
		m.SetUnit(unit)
		points := pmetric.NewNumberDataPointSlice()
		for ago := from; ago <= to; ago += 10 * time.Second {
			p := points.AppendEmpty()
			p.SetTimestamp(pcommon.NewTimestampFromTime(now.Add(ago)))
			p.SetDoubleValue(value(ago))
		}
		if unit == "1" {
			points.MoveAndAppendTo(m.SetEmptyGauge().DataPoints())
			return
		}
		sum := m.SetEmptySum()
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		sum.SetIsMonotonic(name != "nixl.telemetry.ring.capacity")
		points.MoveAndAppendTo(sum.DataPoints())
	}
}
