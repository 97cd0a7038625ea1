// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package otlpmetric_test

import (
	"context"
	"log"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/otlpmetric"
	"github.com/nixl-otel/nixl-otel/bridge/rings"
	"github.com/nixl-otel/nixl-otel/bridge/session"
)

// stop shuts down a provider with a new context, because the program's context may have
// been canceled.
func stop(provider *otlpmetric.Provider) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := provider.Shutdown(ctx); err != nil {
		log.Print(err)
	}
}

// This pipeline exports its metrics to OTEL_EXPORTER_OTLP_ENDPOINT.
func ExampleNew() { //nolint:testableexamples // needs a backend
	ctx := context.Background()
	provider, err := otlpmetric.New(ctx, otlpmetric.WithServiceName("pipeline"))
	if err != nil {
		log.Fatal(err)
	}
	defer stop(provider) // exports once more
	s, err := session.Open("telemetry", session.WithMeterProvider(provider))
	if err != nil {
		log.Print(err) // s still records metrics
	}
	defer s.Close()
	s.AddPromptTokens(ctx, 7)
}

// This program exports the metrics of other processes' agents, read from their rings.
func ExampleWithProducers() { //nolint:testableexamples // needs a backend
	producer, err := rings.New(rings.WithDirectories("/run/nixl"))
	if err != nil {
		log.Fatal(err)
	}
	if err := producer.Start(); err != nil {
		log.Fatal(err)
	}
	defer producer.Close()
	provider, err := otlpmetric.New(context.Background(), otlpmetric.WithProducers(producer))
	if err != nil {
		log.Fatal(err)
	}
	defer stop(provider) // drains the rings and exports once more
}
