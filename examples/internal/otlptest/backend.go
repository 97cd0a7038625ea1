// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package otlptest provides the tests of the examples with an OTLP backend.
package otlptest

import (
	"context"
	"net"
	"sync"
	"testing"

	metricscollector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracecollector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// Backend keeps what it receives. Read its fields after the program has ended.
type Backend struct {
	mu      sync.Mutex
	Metrics []*metrics.ResourceMetrics
	Spans   []*trace.ResourceSpans
}

// Start starts a backend, and sets the variables that make a program export to it. The
// backend stops at the end of the test.
func Start(t *testing.T) *Backend {
	t.Helper()
	listener := Listen(t)
	b := &Backend{}
	server := grpc.NewServer()
	metricscollector.RegisterMetricsServiceServer(server, metricsService{Backend: b})
	tracecollector.RegisterTraceServiceServer(server, traceService{Backend: b})
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(listener); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(func() {
		server.Stop()
		serving.Wait()
	})
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+listener.Addr().String())
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	return b
}

// Listen listens on a free port.
func Listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

type metricsService struct {
	metricscollector.UnimplementedMetricsServiceServer
	*Backend
}

// Export implements the service of OTLP.
func (s metricsService) Export(
	_ context.Context, request *metricscollector.ExportMetricsServiceRequest,
) (*metricscollector.ExportMetricsServiceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Metrics = append(s.Metrics, request.GetResourceMetrics()...)
	return &metricscollector.ExportMetricsServiceResponse{}, nil
}

type traceService struct {
	tracecollector.UnimplementedTraceServiceServer
	*Backend
}

// Export implements the service of OTLP.
func (s traceService) Export(
	_ context.Context, request *tracecollector.ExportTraceServiceRequest,
) (*tracecollector.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Spans = append(s.Spans, request.GetResourceSpans()...)
	return &tracecollector.ExportTraceServiceResponse{}, nil
}
