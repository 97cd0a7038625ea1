// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"context"
	"os"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver/internal/metadata"
)

// NewFactory returns the factory of the receiver nixl_shm.
func NewFactory() receiver.Factory {
	return newFactory(machine{now: time.Now, hostname: os.Hostname, retryAfter: time.Second})
}

func newFactory(on machine) receiver.Factory {
	all := shared{on: on, receivers: make(map[*Config]*ringReceiver)}
	metrics := func(
		_ context.Context, settings receiver.Settings, cfg component.Config, next consumer.Metrics,
	) (receiver.Metrics, error) {
		return all.metrics(cfg.(*Config), settings, next) //nolint:forcetypeassert,errcheck // the Collector passes what createDefaultConfig returned
	}
	logs := func(
		_ context.Context, settings receiver.Settings, cfg component.Config, next consumer.Logs,
	) (receiver.Logs, error) {
		return all.logs(cfg.(*Config), settings, next) //nolint:forcetypeassert,errcheck // as above
	}
	return receiver.NewFactory(
		metadata.Type,
		func() component.Config { return createDefaultConfig() },
		receiver.WithMetrics(metrics, metadata.MetricsStability),
		receiver.WithLogs(logs, metadata.LogsStability),
	)
}
