// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/rings"
	"github.com/nixl-otel/nixl-otel/semconv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// backend is an OTLP backend that stores the last value of nixl.memory.registered by
// agent.
type backend struct {
	collector.UnimplementedMetricsServiceServer
	mu         sync.Mutex
	registered map[string]int64
}

func (b *backend) Export(
	_ context.Context, request *collector.ExportMetricsServiceRequest,
) (*collector.ExportMetricsServiceResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, rm := range request.GetResourceMetrics() {
		for _, sm := range rm.GetScopeMetrics() {
			for _, m := range sm.GetMetrics() {
				if m.GetName() != semconv.MemoryRegistered.Name {
					continue
				}
				for _, dp := range m.GetSum().GetDataPoints() {
					b.registered[dp.GetAttributes()[0].GetValue().GetStringValue()] = dp.GetAsInt()
				}
			}
		}
	}
	return &collector.ExportMetricsServiceResponse{}, nil
}

func startBackend(t *testing.T) *backend {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &backend{registered: make(map[string]int64)}
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

func TestEventsInTheRingsAreExportedOnInterrupt(t *testing.T) {
	dir, b := t.TempDir(), startBackend(t)
	t.Setenv("NIXL_TELEMETRY_CSV_FILE", filepath.Join(t.TempDir(), "events.csv"))
	for i, name := range []string{"one", "two"} {
		a, err := agent.New(name, agent.WithRing(agent.Ring{Dir: dir}))
		if err != nil {
			t.Fatal(err)
		}
		a.MemoryRegistered(t.Context(), int64(i+1))
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if err := run(ctx, []rings.Option{rings.WithDirectories(dir), rings.WithLogger(slog.New(slog.DiscardHandler))}); err != nil {
		t.Fatal(err)
	}
	if b.registered["one"] != 1 || b.registered["two"] != 2 {
		t.Errorf("the backend has %v", b.registered)
	}
}

func TestTargetIsThatOfTheExporter(t *testing.T) {
	for name, c := range map[string]struct {
		env                map[string]string
		protocol, endpoint string
	}{
		"default": {nil, "grpc", "localhost:4317 (OTEL_EXPORTER_OTLP_ENDPOINT isn't set)"},
		"HTTP": {
			map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"},
			"http/protobuf", "localhost:4318 (OTEL_EXPORTER_OTLP_ENDPOINT isn't set)",
		},
		"metrics take precedence": {map[string]string{
			"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "grpc",
			"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:1", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://b:2",
		}, "grpc", "http://b:2"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, setting := range []string{"PROTOCOL", "ENDPOINT"} {
				for _, prefix := range []string{"OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_METRICS_"} {
					t.Setenv(prefix+setting, c.env[prefix+setting])
				}
			}
			if protocol, endpoint := target(); protocol != c.protocol || endpoint != c.endpoint {
				t.Errorf("%s to %s, want %s to %s", protocol, endpoint, c.protocol, c.endpoint)
			}
		})
	}
}

func TestInvalidEnvironmentIsRejected(t *testing.T) {
	for name, c := range map[string]struct {
		env, value, want string
	}{
		"CSV":          {"NIXL_TELEMETRY_CSV_FILE", "/nonexistent/x", "NIXL_TELEMETRY_CSV_FILE: open /nonexistent/x"},
		"endpoint":     {"OTEL_EXPORTER_OTLP_ENDPOINT", "localhost", "OTEL_EXPORTER_OTLP_ENDPOINT=localhost"},
		"run interval": {"NIXL_TELEMETRY_RUN_INTERVAL", "x", "NIXL_TELEMETRY_RUN_INTERVAL=x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(c.env, c.value)
			if err := run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}
