// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/grpc"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// backend is an OTLP backend that stores the names of services and metrics.
type backend struct {
	collector.UnimplementedMetricsServiceServer
	mu       sync.Mutex
	services map[string]bool
	metrics  map[string]bool
}

func (b *backend) Export(
	_ context.Context, request *collector.ExportMetricsServiceRequest,
) (*collector.ExportMetricsServiceResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, rm := range request.GetResourceMetrics() {
		for _, kv := range rm.GetResource().GetAttributes() {
			if kv.GetKey() == semconv.ServiceName {
				b.services[kv.GetValue().GetStringValue()] = true
			}
		}
		for _, sm := range rm.GetScopeMetrics() {
			for _, m := range sm.GetMetrics() {
				b.metrics[m.GetName()] = true
			}
		}
	}
	return &collector.ExportMetricsServiceResponse{}, nil
}

// startBackend starts a backend and sets OTEL_EXPORTER_OTLP_ENDPOINT to it.
func startBackend(t *testing.T) *backend {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &backend{services: make(map[string]bool), metrics: make(map[string]bool)}
	server := grpc.NewServer()
	collector.RegisterMetricsServiceServer(server, b)
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
	return b
}

func TestRunExportsAllMetrics(t *testing.T) {
	b := startBackend(t)
	s := defaults()
	s.rate, s.bad = 10_000, 0.5
	s.duration = 200 * time.Millisecond
	if err := run(t.Context(), s, io.Discard); err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, m := range semconv.RingKernel() {
		if !m.Derived {
			want = append(want, m.Name)
		}
	}
	for name := range b.metrics {
		got = append(got, name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("metrics (-want +got):\n%s", d)
	}
	if !b.services["ringkernel-example"] {
		t.Errorf("services %v", b.services)
	}
}
