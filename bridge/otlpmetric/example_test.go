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

// stop shuts a provider down with a context of its own: that of the program may
// have ended.
func stop(provider *otlpmetric.Provider) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := provider.Shutdown(ctx); err != nil {
		log.Print(err)
	}
}

// A pipeline exports its metrics to OTEL_EXPORTER_OTLP_ENDPOINT.
func ExampleNew() { //nolint:testableexamples // needs a backend
	ctx := context.Background()
	provider, err := otlpmetric.New(ctx, otlpmetric.WithServiceName("pipeline"))
	if err != nil {
		log.Fatal(err)
	}
	defer stop(provider) // exports once more
	s, err := session.Open("telemetry", session.WithMeterProvider(provider))
	if err != nil {
		log.Print(err) // s emits metrics nevertheless
	}
	defer s.Close()
	s.AddPromptTokens(ctx, 7)
}

// A program exports the rings of other processes' agents.
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
