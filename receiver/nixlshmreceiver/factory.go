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

// NewFactory makes the factory of the receiver nixl_shm.
func NewFactory() receiver.Factory {
	return newFactory(machine{now: time.Now, hostname: os.Hostname})
}

func newFactory(on machine) receiver.Factory {
	create := func(
		_ context.Context, settings receiver.Settings, cfg component.Config, next consumer.Metrics,
	) (receiver.Metrics, error) {
		return newReceiver(cfg.(*Config), settings, next, on) //nolint:forcetypeassert,errcheck // the Collector hands back what createDefaultConfig made
	}
	return receiver.NewFactory(
		metadata.Type,
		func() component.Config { return createDefaultConfig() },
		receiver.WithMetrics(create, metadata.MetricsStability),
	)
}
