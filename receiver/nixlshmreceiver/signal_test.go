// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"slices"
	"testing"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/nixl-otel/nixl-otel/internal/notice"
)

// collectorCore is a core of the Collector's logger, which adds attributes to lines.
type collectorCore struct {
	zapcore.Core

	added map[string]string
}

func (c collectorCore) DropInjectedAttributes(keys ...string) zapcore.Core {
	core := c.Core
	for key, value := range c.added {
		if !slices.Contains(keys, key) {
			core = core.With([]zapcore.Field{zap.String(key, value)})
		}
	}
	return core
}

// The receiver belongs to the pipelines of all signals, and all notices are logged by one function.
func TestLogLinesNameNeitherASignalNorAMeaninglessCaller(t *testing.T) {
	core, lines := observer.New(zapcore.InfoLevel)
	settings := componenttest.NewNopTelemetrySettings()
	settings.Logger = zap.New(collectorCore{core, map[string]string{"otelcol.signal": "metrics", "otelcol.component.id": "nixl_shm"}}, zap.AddCaller())
	r := ringReceiver{log: withoutSignal(settings).Logger}
	r.notice(notice.Notice{Text: "ring opened"})
	line := lines.All()[0]
	if line.Caller.Defined || len(line.Context) != 1 || line.Context[0].Key != "otelcol.component.id" {
		t.Errorf("caller %v, fields %v", line.Caller, line.Context)
	}
}
