// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/otlpmetric"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

// shutdownTime bounds the last export, so that a backend that can't be reached
// doesn't delay the exit for long.
const shutdownTime = 5 * time.Second

// export exports over OTLP if the environment sets an endpoint. shutdown exports the
// last metrics.
func export(ctx context.Context, rt *ringkernel.Runtime, opts ...ringkernel.ProducerOption) (shutdown func() error, err error) {
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT") == "" {
		return func() error { return nil }, nil
	}
	provider, err := otlpmetric.New(ctx,
		otlpmetric.WithServiceName("ringkernel-example"),
		otlpmetric.WithProducers(rt.NewProducer(opts...)))
	if err != nil {
		return nil, err
	}
	return func() error {
		// Don't use the outer ctx, which is done when the program is interrupted.
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			return fmt.Errorf("export last metrics: %w", err)
		}
		return nil
	}, nil
}
