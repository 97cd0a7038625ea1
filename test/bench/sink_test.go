// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package bench

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// sink is a backend for OTLP over HTTP that stores only the number of events of
// each agent.
type sink struct {
	*httptest.Server

	mu     sync.Mutex
	events map[string]int64 // by the path of the ring
	points int              // in the newest request
	bytes  int              // in the newest request, as received
	taken  func(at time.Time, events int64)
}

// newSink starts a backend. It calls taken, unless nil, for each request with the
// total number of events.
func newSink(b *testing.B, taken func(at time.Time, events int64)) *sink {
	b.Helper()
	s := &sink{events: make(map[string]int64), taken: taken}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	b.Cleanup(s.Close)
	return s
}

func (s *sink) serve(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	body, err := io.ReadAll(r.Body)
	request := pmetricotlp.NewExportRequest()
	if err == nil {
		err = request.UnmarshalProto(body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.add(at, request.Metrics(), len(body))
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (s *sink) add(at time.Time, m pmetric.Metrics, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.points, s.bytes = m.DataPointCount(), size
	for _, rm := range m.ResourceMetrics().All() {
		path, _ := rm.Resource().Attributes().Get("nixl.telemetry.path")
		var sum int64
		for _, sm := range rm.ScopeMetrics().All() {
			for _, metric := range sm.Metrics().All() {
				if metric.Name() == "nixl.events" {
					for _, p := range metric.Sum().DataPoints().All() {
						sum += p.IntValue()
					}
				}
			}
		}
		s.events[path.Str()] = sum
	}
	if s.taken != nil {
		s.taken(at, s.sum())
	}
}

func (s *sink) sum() (n int64) {
	for _, v := range s.events {
		n += v
	}
	return n
}

// total returns the number of events of all agents, and the numbers of points and
// bytes of the newest request.
func (s *sink) total() (events int64, points, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sum(), s.points, s.bytes
}
