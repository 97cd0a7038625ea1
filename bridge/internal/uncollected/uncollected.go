// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package uncollected reports a metric producer that no reader collects. The SDK can't do
// this, because it only knows the producers that were passed to a reader.
package uncollected

import (
	"fmt"
	"time"
)

const (
	// Timeout is the time after which a producer is reported: twice the SDK's default
	// export interval.
	Timeout = 2 * time.Minute
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

// Start returns a running Timer. If neither Collected nor Closing is called within
// [Timeout], it calls report with an error that contains metrics.
func Start(metrics string, now func() time.Time, report func(error)) *Timer {
	t := &Timer{metrics: metrics, now: now, report: report, start: now()}
	t.timer = time.AfterFunc(Timeout, func() { report(t.err()) })
	return t
}

// Collected stops the Timer.
func (t *Timer) Collected() {
	if t != nil {
		t.timer.Stop()
	}
}

// Closing calls report if the program stops recording before [Timeout] without any
// collection. It does nothing within the SDK's default export interval, because
// MeterProvider.Shutdown often follows and collects.
func (t *Timer) Closing() {
	if t != nil && t.now().Sub(t.start) >= interval && t.timer.Stop() {
		t.report(t.err())
	}
}

func (t *Timer) err() error {
	return fmt.Errorf("no reader has collected the metrics of %s for %v: pass the Producer to a reader with metric.WithProducer; "+
		"a pull reader, such as exporters/prometheus, must be scraped", t.metrics, t.now().Sub(t.start).Round(time.Second))
}
