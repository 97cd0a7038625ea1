// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/grpc"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/semconv"
)

func TestProgramIsThatOfTheDocumentation(t *testing.T) {
	program, err := os.ReadFile("main.go")
	must.OK(t, err)
	doc, err := os.ReadFile("../../bridge/doc.go")
	must.OK(t, err)
	_, code, _ := strings.Cut(string(program), "package main\n")
	shown := strings.ReplaceAll(strings.ReplaceAll(string(doc), "//\t", ""), "//\n", "\n")
	if !strings.Contains(shown, "package main\n"+code) {
		t.Error("bridge/doc.go shows another program than main.go")
	}
}

// backend accepts metrics over OTLP and counts how often it received each.
type backend struct {
	collector.UnimplementedMetricsServiceServer

	mu       sync.Mutex
	received map[string]int
}

func (b *backend) Export(_ context.Context, r *collector.ExportMetricsServiceRequest) (*collector.ExportMetricsServiceResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, rm := range r.ResourceMetrics {
		for _, sm := range rm.ScopeMetrics {
			for _, m := range sm.Metrics {
				b.received[m.Name]++
			}
		}
	}
	return new(collector.ExportMetricsServiceResponse), nil
}

// The program lives for milliseconds. Its last export has every metric.
func TestEveryMetricIsExportedOnce(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must.OK(t, err)
	b := &backend{received: make(map[string]int)}
	server := grpc.NewServer()
	collector.RegisterMetricsServiceServer(server, b)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+listener.Addr().String())
	must.OK(t, run(t.Context()))
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range []semconv.Metric{
		semconv.AgentUp, semconv.MemoryUsage, semconv.TransferIO, semconv.TransferDuration, semconv.KernelMessagesReceived, semconv.KernelMessagesProcessed,
		semconv.KernelMessagesSent, semconv.KernelMessageDuration, semconv.KernelUptime, semconv.KernelThroughput,
	} {
		if n := b.received[m.Name]; n != 1 {
			t.Errorf("%s was exported %d times", m.Name, n)
		}
	}
}
