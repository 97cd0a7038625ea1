package otlpmetric_test

import (
	"context"
	"log"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/otlpmetric"
	"github.com/nixl-otel/nixl-otel/bridge/rings"
)

// An agent ships its metrics to where OTEL_EXPORTER_OTLP_ENDPOINT says.
func ExampleNew() { //nolint:testableexamples // it needs a backend
	producer := agent.NewProducer()
	provider, err := otlpmetric.New(context.Background(), otlpmetric.WithServiceName("kv-cache"), otlpmetric.WithProducers(producer))
	if err != nil {
		log.Fatal(err) // for example: OTEL_EXPORTER_OTLP_ENDPOINT=localhost:4317: it has no scheme: …
	}
	a, err := agent.New("worker-0", agent.WithProducer(producer))
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close()
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil { // ships what came last
			log.Print(err)
		}
	}()
	a.Transfer(context.Background(), agent.Transmit, 1<<20, 12*time.Microsecond, 340*time.Microsecond)
}

// A program ships the rings of other processes' agents.
func ExampleWithProducers() { //nolint:testableexamples // it needs a backend
	producer, err := rings.New(rings.WithDirectories("/run/nixl"))
	if err != nil {
		log.Fatal(err)
	}
	producer.Start()
	defer producer.Close()
	provider, err := otlpmetric.New(context.Background(), otlpmetric.WithProducers(producer))
	if err != nil {
		log.Fatal(err)
	}
	// At the end of the program: it drains the rings, and ships what came last.
	if err := provider.Shutdown(context.Background()); err != nil {
		log.Print(err)
	}
}
