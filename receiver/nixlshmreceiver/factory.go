// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"os"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver"

	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver/internal/metadata"
)

// NewFactory returns the factory of the receiver nixl_shm.
//
// The receiver has its own collection loop instead of scraperhelper's controller, which drops the error of the next
// consumer, doesn't collect at shutdown, and sends empty batches. The receiver forgets an agent that has exited only after the
// next consumer has accepted its last totals. The configuration and its defaults are scraperhelper's.
func NewFactory() receiver.Factory {
	return newFactory(machine{now: time.Now, hostname: os.Hostname, retryAfter: time.Second})
}

func newFactory(on machine) receiver.Factory {
	s := &shared{on: on, receivers: make(map[component.Config]*ringReceiver)}
	return receiver.NewFactory(
		metadata.Type,
		func() component.Config { return createDefaultConfig() },
		receiver.WithMetrics(s.metrics, metadata.MetricsStability),
		receiver.WithLogs(s.logs, metadata.LogsStability),
	)
}
