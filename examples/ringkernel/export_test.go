// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
	"github.com/nixl-otel/nixl-otel/examples/internal/otlptest"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/semconv"
)

func TestRunExportsAllMetricsAndTheTracesOfExemplars(t *testing.T) {
	b := otlptest.Start(t)
	s := defaults()
	s.rate, s.bad = 10_000, 0.5
	s.duration = 300 * time.Millisecond
	must.OK(t, run(t.Context(), s, io.Discard))
	services, names, exemplars, traces := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, rm := range b.Metrics {
		for _, kv := range rm.GetResource().GetAttributes() {
			if kv.GetKey() == semconv.ServiceName {
				services[kv.GetValue().GetStringValue()] = true
			}
		}
		for _, sm := range rm.GetScopeMetrics() {
			for _, m := range sm.GetMetrics() {
				names[m.GetName()] = true
				for _, p := range m.GetHistogram().GetDataPoints() {
					for _, e := range p.GetExemplars() {
						exemplars[string(e.GetTraceId())] = true
					}
				}
			}
		}
	}
	for _, rs := range b.Spans {
		for _, ss := range rs.GetScopeSpans() {
			for _, span := range ss.GetSpans() {
				traces[string(span.GetTraceId())] = true
			}
		}
	}
	want := make(map[string]bool)
	for _, m := range semconv.RingKernel() {
		want[m.Name] = true
	}
	if d := cmp.Diff(want, names); d != "" {
		t.Errorf("metrics (-want +got):\n%s", d)
	}
	if !services["ringkernel-example"] {
		t.Errorf("services %v", services)
	}
	if len(exemplars) == 0 {
		t.Error("no exemplars")
	}
	for id := range exemplars {
		if !traces[id] {
			t.Errorf("trace %x of an exemplar wasn't exported", id)
		}
	}
}

func TestRunServesAPrometheusPageWithExemplars(t *testing.T) {
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	listener := otlptest.Listen(t)
	_ = listener.Close()
	s := defaults()
	s.rate, s.listen = 10_000, listener.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- run(ctx, s, io.Discard) }()
	exemplar := regexp.MustCompile(`ringkernel_message_duration_seconds_bucket\{.*ringkernel_kernel_id="parse".* # \{.*trace_id="[0-9a-f]{32}"`)
	page := ""
	must.EventuallyTrue(t, "exemplar", func() bool {
		page = fetch(t, "http://"+s.listen+"/metrics")
		return exemplar.MatchString(page)
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if !strings.Contains(page, `ringkernel_kernel_status{`) {
		t.Errorf("the page is\n%s", page)
	}
}

// fetch returns a page, or "" as long as nothing listens.
func fetch(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	must.OK(t, err)
	request.Header.Set("Accept", "application/openmetrics-text")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("%s: status %d, %v\n%s", url, response.StatusCode, err, body)
	}
	return string(body)
}

// Kernels of one name, names that aren't UTF-8 and kernels that come and go don't make the
// page of a program invalid.
func TestPrometheusPageIsAlwaysValid(t *testing.T) {
	registry := prometheus.NewRegistry()
	page, err := promexporter.New(promexporter.WithRegisterer(registry))
	must.OK(t, err)
	provider := ringkernel.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(page)))
	one, other := ringkernel.NewRuntime(provider), ringkernel.NewRuntime(provider)
	check := func() {
		t.Helper()
		if families, err := registry.Gather(); err != nil || len(families) < len(semconv.RingKernel()) {
			t.Errorf("%d families, %v", len(families), err)
		}
	}
	use := func(rt *ringkernel.Runtime, id string) {
		k := rt.Register(id)
		k.Received(t.Context())
		k.Processed(t.Context(), time.Millisecond)
		k.Error(t.Context(), io.EOF)
		k.SetQueueSize(ringkernel.InputQueue, 1)
		k.SetQueueCapacity(ringkernel.InputQueue, 2)
	}
	for _, rt := range []*ringkernel.Runtime{one, other} {
		for _, id := range []string{"same", "not UTF-8: \xff", "not UTF-8: \xfe", "line\nbreak", "\"quote\\"} {
			use(rt, id)
		}
		check()
	}
	for i := range 10_000 {
		id := fmt.Sprint(i)
		use(one, id)
		if i%2500 == 0 {
			check()
		}
		one.Unregister(id)
	}
	check()
}
