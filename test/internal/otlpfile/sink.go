// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package otlpfile

import (
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip" // what exporters compress with
	"google.golang.org/grpc/status"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// Sink is a server for OTLP over gRPC and HTTP, which share a port. It keeps and adds up what it
// receives.
type Sink struct {
	Address string

	server *http.Server

	mu       sync.Mutex
	sums     *Sums
	metrics  []pmetric.Metrics
	times    []time.Time
	logs     []plog.Logs
	requests int  // accepted
	down     bool // whether requests are rejected
}

// NewSink starts a sink on a free port of the loopback interface. Points may arrive late or
// twice, as from queues.
func NewSink(tb testing.TB) *Sink {
	tb.Helper()
	return Listen(tb, "127.0.0.1:0")
}

// Listen starts a sink at an address. It stops at the end of the test.
func Listen(tb testing.TB, address string) *Sink {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", address)
	must.OK(tb, err)
	s := Serve(l)
	tb.Cleanup(s.Close)
	return s
}

// Serve starts a sink that accepts connections from l.
func Serve(l net.Listener) *Sink {
	s := &Sink{Address: l.Addr().String(), sums: NewSumsAnyOrder()}
	rpc := grpc.NewServer()
	pmetricotlp.RegisterGRPCServer(rpc, &metricsServer{sink: s})
	plogotlp.RegisterGRPCServer(rpc, &logsServer{sink: s})
	s.server = &http.Server{ReadHeaderTimeout: time.Minute, Protocols: new(http.Protocols)}
	s.server.Protocols.SetHTTP1(true)
	s.server.Protocols.SetUnencryptedHTTP2(true)
	s.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			rpc.ServeHTTP(w, r)
			return
		}
		s.serve(w, r)
	})
	go func() { _ = s.server.Serve(l) }() // until it is closed
	return s
}

// URL returns the endpoint for exporters.
func (s *Sink) URL() string { return "http://" + s.Address }

// Close closes the port and all connections.
func (s *Sink) Close() { _ = s.server.Close() }

// SetDown makes the sink reject requests, or accept them again.
func (s *Sink) SetDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// add adds a request, unless the sink is down.
func (s *Sink) add(m pmetric.Metrics, l plog.Logs) (accepted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return false
	}
	s.requests++
	s.sums.Add(m)
	s.metrics = append(s.metrics, m)
	s.times = append(s.times, time.Now())
	s.logs = append(s.logs, l)
	return true
}

func (s *Sink) serve(w http.ResponseWriter, r *http.Request) {
	body := io.Reader(r.Body)
	var err error
	if r.Header.Get("Content-Encoding") == "gzip" {
		body, err = gzip.NewReader(body)
	}
	metrics, logs := pmetricotlp.NewExportRequest(), plogotlp.NewExportRequest()
	if err == nil {
		var text []byte
		if text, err = io.ReadAll(body); err == nil && r.URL.Path == "/v1/logs" {
			err = logs.UnmarshalProto(text)
		} else if err == nil {
			err = metrics.UnmarshalProto(text)
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf") // an empty message is a success
	if !s.add(metrics.Metrics(), logs.Logs()) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

type metricsServer struct {
	pmetricotlp.UnimplementedGRPCServer

	sink *Sink
}

// Export implements [pmetricotlp.GRPCServer].
func (m *metricsServer) Export(_ context.Context, r pmetricotlp.ExportRequest) (pmetricotlp.ExportResponse, error) {
	return pmetricotlp.NewExportResponse(), m.sink.answer(m.sink.add(r.Metrics(), plog.NewLogs()))
}

type logsServer struct {
	plogotlp.UnimplementedGRPCServer

	sink *Sink
}

// Export implements [plogotlp.GRPCServer].
func (l *logsServer) Export(_ context.Context, r plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	return plogotlp.NewExportResponse(), l.sink.answer(l.sink.add(pmetric.NewMetrics(), r.Logs()))
}

func (s *Sink) answer(accepted bool) error {
	if accepted {
		return nil
	}
	return status.Error(codes.Unavailable, "down")
}

// Totals returns the totals of what has arrived.
func (s *Sink) Totals(tb testing.TB) Totals {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	totals, err := s.sums.Totals()
	must.OK(tb, err)
	return totals
}

// Resources returns what has arrived with each set of resource attributes.
func (s *Sink) Resources() ([]Resource, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sums.Resources()
}

// Collections returns the metrics of all requests.
func (s *Sink) Collections() []pmetric.Metrics {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.metrics)
}

// Received returns when the requests arrived.
func (s *Sink) Received() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.times)
}

// Logs returns the logs of all requests.
func (s *Sink) Logs() []plog.Logs {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.logs)
}

// AwaitTotals waits until the totals are as wanted, except for the series in but.
func (s *Sink) AwaitTotals(tb testing.TB, want Totals, but ...string) {
	tb.Helper()
	must.Eventually(tb, func() string { return Diff(want, s.Totals(tb), but...) })
}

// AwaitRequests waits for some more requests.
func (s *Sink) AwaitRequests(tb testing.TB, more int) {
	tb.Helper()
	requests := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.requests
	}
	before := requests()
	must.EventuallyTrue(tb, "more requests", func() bool { return requests() >= before+more })
}
