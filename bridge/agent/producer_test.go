// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// If no reader collects a Producer, closing the first agent reports an error, or
// else a timer does.
func TestProducerWithoutAReaderIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		closed, collected bool
		want              string // empty for no error
	}{
		"open agent":   {false, false, "the metrics of agents for 2m0s: pass the Producer to a reader with metric.WithProducer"},
		"closed agent": {true, false, "the metrics of agents for 1m0s: pass the Producer to a reader with metric.WithProducer"},
		"collected":    {true, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			handler := otel.GetErrorHandler()
			defer otel.SetErrorHandler(handler)
			var errs []error
			otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { errs = append(errs, err) }))
			synctest.Test(t, func(t *testing.T) {
				p := agent.NewProducer()
				a, err := agent.New("a", agent.WithProducer(p))
				if err != nil {
					t.Fatal(err)
				}
				defer closeAgent(t, a)
				if c.collected {
					if _, err := p.Produce(t.Context()); err != nil {
						t.Error(err)
					}
				}
				time.Sleep(time.Minute) // in a bubble of synctest
				if c.closed {
					closeAgent(t, a)
				}
				time.Sleep(time.Hour) // in a bubble of synctest
				synctest.Wait()
			})
			switch {
			case c.want == "" && len(errs) > 0:
				t.Errorf("errors: %v", errs)
			case c.want != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), c.want)):
				t.Errorf("errors: %v", errs)
			}
		})
	}
}

func TestAgentWithoutADestinationIsRejected(t *testing.T) {
	for name, opts := range map[string][]agent.Option{"no option": nil, "no producer": {agent.WithProducer(nil)}} {
		t.Run(name, func(t *testing.T) {
			_, err := agent.New("a", opts...)
			if err == nil || !strings.Contains(err.Error(), "agent a: no destination for the telemetry: pass WithProducer") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestScopeIsThatOfSemconv(t *testing.T) {
	b := newBackend()
	b.agent(t)
	var rm metricdata.ResourceMetrics
	if err := b.reader.Collect(t.Context(), &rm); err != nil {
		t.Fatal(err)
	}
	if s := rm.ScopeMetrics[0].Scope; s.Name != semconv.ScopeName || s.Version != semconv.Version {
		t.Errorf("scope %+v", s)
	}
}

func TestStartTimeIsTheCreationOfTheAgent(t *testing.T) {
	b := newBackend()
	b.agent(t).MemoryRegistered(ctx, 1)
	b.clock.Advance(time.Minute)
	for _, m := range collect(t, b.reader) {
		sum, ok := m.Data.(metricdata.Sum[int64])
		if !ok {
			continue
		}
		for _, p := range sum.DataPoints {
			if !p.StartTime.Equal(start) || !p.Time.Equal(start.Add(time.Minute)) {
				t.Errorf("%s covers %v to %v", m.Name, p.StartTime, p.Time)
			}
		}
	}
}

func TestPointsNeverEndBeforeTheyStart(t *testing.T) {
	b := newBackend()
	b.agent(t)
	b.clock.Advance(-time.Hour)
	for _, m := range collect(t, b.reader) {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok && sum.DataPoints[0].Time.Before(sum.DataPoints[0].StartTime) {
			t.Errorf("%s ends before it starts", m.Name)
		}
	}
}
