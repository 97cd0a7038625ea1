// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// signalKey is the attribute that the Collector adds to what a component reports about
// itself.
const signalKey = "otelcol.signal"

// withoutSignal returns the settings without the signal of a pipeline, for a receiver that
// belongs to the pipelines of several signals. The receivers of the Collector use an
// internal package for this.
func withoutSignal(settings component.TelemetrySettings) component.TelemetrySettings {
	type (
		core interface {
			DropInjectedAttributes(keys ...string) zapcore.Core
		}
		provider interface {
			DropInjectedAttributes(keys ...string) metric.MeterProvider
		}
	)
	settings.Logger = settings.Logger.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core {
		if c, ok := c.(core); ok {
			return c.DropInjectedAttributes(signalKey)
		}
		return c
	}))
	if p, ok := settings.MeterProvider.(provider); ok {
		settings.MeterProvider = p.DropInjectedAttributes(signalKey)
	}
	return settings
}
