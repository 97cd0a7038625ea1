// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package uncollected reports a metric producer that no reader collects. The SDK
// doesn't: a reader only knows the producers that it was given.
package uncollected

import (
	"fmt"
	"time"
)

const (
	// Patience is the time after which a producer is reported: two of the SDK's
	// default export intervals.
	Patience = 2 * time.Minute
	// interval is the SDK's default export interval.
	interval = time.Minute
)

// Timer waits for the first collection of a producer. A nil *Timer does nothing.
type Timer struct {
	metrics string
	now     func() time.Time
	report  func(error)
	start   time.Time
	timer   *time.Timer
}

// Start starts to wait. If neither Collected nor Closing is called for
// [Patience], report gets an error that says whose metrics nobody collects.
func Start(metrics string, now func() time.Time, report func(error)) *Timer {
	t := &Timer{metrics: metrics, now: now, report: report, start: now()}
	t.timer = time.AfterFunc(Patience, func() { report(t.err()) })
	return t
}

// Collected ends the wait.
func (t *Timer) Collected() {
	if t != nil {
		t.timer.Stop()
	}
}

// Closing reports a producer whose program stops recording before [Patience] is
// over. Within the SDK's default export interval, it reports nothing: the first
// collection may be that of MeterProvider.Shutdown, which often follows.
func (t *Timer) Closing() {
	if t != nil && t.now().Sub(t.start) >= interval && t.timer.Stop() {
		t.report(t.err())
	}
}

func (t *Timer) err() error {
	return fmt.Errorf("no reader has collected the metrics of %s for %v: pass the Producer to a reader with metric.WithProducer; "+
		"a pull reader, such as exporters/prometheus, must be scraped", t.metrics, t.now().Sub(t.start).Round(time.Second))
}
