// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/semconv"
)

func TestAllMetricsAreExportedAndAllMessagesProcessed(t *testing.T) {
	var metrics, out bytes.Buffer
	exporter, err := stdoutmetric.New(stdoutmetric.WithWriter(&metrics))
	must.OK(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	must.OK(t, run(ctx, metric.NewPeriodicReader(exporter), 200*time.Millisecond, &out))
	for _, m := range semconv.RingKernel() {
		if !strings.Contains(metrics.String(), `"`+m.Name+`"`) {
			t.Errorf("%s wasn't exported", m.Name)
		}
	}
	if n := strings.Count(out.String(), "=== Telemetry @ "); n < 2 {
		t.Errorf("%d summaries, want several", n)
	}
	last := out.String()[strings.LastIndex(out.String(), "==="):]
	if !regexp.MustCompile(`(?s)parse: terminated, [1-9]\d* processed.*reduce: terminated, [1-9]\d* processed`).MatchString(last) {
		t.Errorf("the last summary is %s", last)
	}
}
