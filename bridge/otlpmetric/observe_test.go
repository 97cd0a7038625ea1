package otlpmetric_test

import (
	"context"

	"go.opentelemetry.io/otel/metric"
)

// observeBy calls f at each collection.
func observeBy(f func()) metric.Int64ObservableCounterOption {
	return metric.WithInt64Callback(func(context.Context, metric.Int64Observer) error {
		f()
		return nil
	})
}
