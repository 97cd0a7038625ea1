// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

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

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// sendSynthetic sends a backend the metrics that the test can't get from real
// programs:
//
//   - of an agent with every label that dashboards select by;
//   - of an agent whose ring another consumer reads;
//   - of a Collector whose storage extension fails;
//   - of DCGM's exporter for GPUs, and of Dynamo's frontend.
func (b backend) sendSynthetic(t *testing.T, kind string) {
	t.Helper()
	md := pmetric.NewMetrics()
	pod := reports(md, map[string]string{
		"service.name": "decode", "host.name": "node-1", "nixl.agent.name": "rank-0", "k8s.cluster.name": "cluster-1",
		"k8s.namespace.name": "inference", "k8s.pod.name": "decode-0", "gen_ai.request.model": "llama", "service.instance.id": "pod",
	})
	pod.sum("nixl.telemetry.ring.capacity", "{event}", func(time.Duration) float64 { return 4096 })
	taken := reports(md, map[string]string{
		"service.name": "nixl", "host.name": host, "nixl.agent.name": "taken-0", "service.instance.id": "taken",
	})
	taken.counter("nixl.telemetry.ring.foreign_reads", "{read}", func(ago time.Duration) float64 { return ago.Minutes() + past.Minutes() })
	storage := reports(md, map[string]string{"service.name": "otelcol-nixl", "service.instance.id": "failing-storage"})
	storage.counter("otelcol_receiver_nixl_shm_checkpoint_failures", "{failure}",
		func(ago time.Duration) float64 { return ago.Minutes() + past.Minutes() })
	gpu := reports(md, map[string]string{"service.name": "dcgm-exporter", "service.instance.id": "gpu"})
	for _, name := range []string{
		"DCGM_FI_PROF_NVLINK_TX_BYTES", "DCGM_FI_PROF_NVLINK_RX_BYTES", "DCGM_FI_PROF_PCIE_TX_BYTES", "DCGM_FI_PROF_PCIE_RX_BYTES", "DCGM_FI_DEV_MEM_COPY_UTIL",
	} {
		gpu.gauge(name, map[string]string{"Hostname": "node-1", "gpu": "0"}, func(time.Duration) float64 { return 42 })
	}
	frontend := reports(md, map[string]string{"service.name": "dynamo", "service.instance.id": "frontend"})
	for _, name := range []string{"dynamo_frontend_time_to_first_token_seconds", "dynamo_frontend_inter_token_latency_seconds"} {
		frontend.histogram(name, "", kind, map[string]string{"model": "llama"})
	}
	frontend.gauge("dynamo_frontend_inflight_requests", map[string]string{"model": "llama"}, func(time.Duration) float64 { return 7 })
	vllm := reports(md, map[string]string{"service.name": "vllm", "service.instance.id": "vllm"})
	vllm.histogram("vllm:time_to_first_token_seconds", "", kind, map[string]string{"model_name": "llama"})
	vllm.gauge("vllm:num_requests_running", map[string]string{"model_name": "llama"}, func(time.Duration) float64 { return 7 })
	nic := reports(md, map[string]string{"service.name": "node-exporter", "service.instance.id": "node"})
	for _, name := range []string{
		"node_infiniband_port_data_transmitted_bytes", "node_infiniband_port_data_received_bytes", "node_infiniband_port_errors_received",
		"node_infiniband_port_discards_transmitted", "node_network_transmit_bytes", "node_network_receive_bytes",
	} {
		nic.counter(name, "", func(ago time.Duration) float64 { return ago.Seconds() + past.Seconds() })
	}

	b.send(t, md)
}

// send sends metrics to a backend.
func (b backend) send(t *testing.T, md pmetric.Metrics) {
	t.Helper()
	text, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	must.OK(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.otlp+"/v1/metrics", bytes.NewReader(text))
	must.OK(t, err)
	request.Header.Set("Content-Type", "application/x-protobuf")
	response, err := http.DefaultClient.Do(request)
	must.OK(t, err)
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		t.Fatalf("%s: %s", b.name, response.Status)
	}
}

// Synthetic series have points in the past and in the future, so that they don't
// end during the test.
const past, ahead, step = 3 * time.Minute, 9 * time.Minute, 5 * time.Second

type reporter struct{ metrics pmetric.MetricSlice }

// reports adds a resource with attributes.
func reports(md pmetric.Metrics, attributes map[string]string) reporter {
	rm := md.ResourceMetrics().AppendEmpty()
	for k, v := range attributes {
		rm.Resource().Attributes().PutStr(k, v)
	}
	return reporter{rm.ScopeMetrics().AppendEmpty().Metrics()}
}

func (r reporter) metric(name, unit string) pmetric.Metric {
	m := r.metrics.AppendEmpty()
	m.SetName(name)
	m.SetUnit(unit)
	return m
}

func (r reporter) sum(name, unit string, value func(ago time.Duration) float64) pmetric.Sum {
	sum := r.metric(name, unit).SetEmptySum()
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	points(sum.DataPoints(), nil, value)
	return sum
}

func (r reporter) counter(name, unit string, value func(ago time.Duration) float64) {
	r.sum(name, unit, value).SetIsMonotonic(true)
}

func (r reporter) gauge(name string, attributes map[string]string, value func(ago time.Duration) float64) {
	points(r.metric(name, "").SetEmptyGauge().DataPoints(), attributes, value)
}

// histogram adds a histogram of a kind, with one observation of about 3 per step.
func (r reporter) histogram(name, unit, kind string, attributes map[string]string) {
	m := r.metric(name, unit)
	if kind == explicit {
		h := m.SetEmptyHistogram()
		h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		each(func(at pcommon.Timestamp, ago time.Duration) {
			n := uint64((ago + past) / step)
			p := h.DataPoints().AppendEmpty()
			p.SetTimestamp(at)
			put(p.Attributes(), attributes)
			p.ExplicitBounds().FromRaw([]float64{1, 2, 4})
			p.BucketCounts().FromRaw([]uint64{0, 0, n, 0})
			p.SetCount(n)
			p.SetSum(3 * float64(n))
		})
		return
	}
	h := m.SetEmptyExponentialHistogram()
	h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	each(func(at pcommon.Timestamp, ago time.Duration) {
		n := uint64((ago + past) / step)
		p := h.DataPoints().AppendEmpty()
		p.SetTimestamp(at)
		put(p.Attributes(), attributes)
		p.Positive().SetOffset(1) // scale 0: from 2 to 4
		p.Positive().BucketCounts().FromRaw([]uint64{n})
		p.SetCount(n)
		p.SetSum(3 * float64(n))
	})
}

func points(list pmetric.NumberDataPointSlice, attributes map[string]string, value func(ago time.Duration) float64) {
	each(func(at pcommon.Timestamp, ago time.Duration) {
		p := list.AppendEmpty()
		p.SetTimestamp(at)
		put(p.Attributes(), attributes)
		p.SetDoubleValue(value(ago))
	})
}

// each calls a function for each point in time. Ago is the time since now, negative
// in the past.
func each(do func(at pcommon.Timestamp, ago time.Duration)) {
	now := time.Now()
	for ago := -past; ago <= ahead; ago += step {
		do(pcommon.NewTimestampFromTime(now.Add(ago)), ago)
	}
}

func put(m pcommon.Map, attributes map[string]string) {
	for k, v := range attributes {
		m.PutStr(k, v)
	}
}
