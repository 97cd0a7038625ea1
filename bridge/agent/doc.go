// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package agent reports the telemetry of Go programs that move data as NIXL
// agents do. An [Agent] reports the metrics that the Collector receiver nixl_shm
// reports for a NIXL agent, with the same names, kinds, units, attributes, buckets
// and start times.
//
// An agent reports in one of two ways. Choose [WithProducer] if your program has
// an OpenTelemetry pipeline. Choose [WithRing] if a Collector with nixl_shm, or
// another program with bridge/rings, reads the rings on this host. Using both
// would count every event twice, so [New] rejects it, even in two agents with the
// same name.
//
//	producer := agent.NewProducer()
//	reader := metric.NewPeriodicReader(exporter, metric.WithProducer(producer))
//	provider := metric.NewMeterProvider(metric.WithReader(reader))
//	defer provider.Shutdown(ctx)
//
//	a, err := agent.New("decode-0", agent.WithProducer(producer))
//	if err != nil {
//		return err
//	}
//	defer a.Close()
//
//	a.MemoryRegistered(ctx, 1<<30)
//	a.Transfer(ctx, agent.Transmit, bytes, postTime, totalTime)
//
// Package bridge/otlpmetric replaces the reader and the provider with one call. An
// agent and its MeterProvider can be closed in any order; the last export is
// complete. A nil *Agent does nothing; to turn telemetry off, leave it nil.
//
// # Metrics
//
//	call                        metrics
//	Agent.Transfer              nixl.transfer.io, .requests, .size, .duration, .post.duration, .throughput, .last.…
//	Agent.MemoryRegistered      nixl.memory.registered, .usage, .last.size
//	Agent.MemoryDeregistered    nixl.memory.deregistered, .usage, .last.size
//	Agent.Error                 nixl.errors
//	Agent.Event                 nixl.event.value, nixl.event.last_value
//	Agent.EventsDropped         nixl.telemetry.events.dropped
//	all of them                 nixl.events
//
// [WithSizeClasses] adds the attribute nixl.transfer.size_class to .duration and
// .post.duration.
//
// [Agent.With] adds attributes to all data points, such as semconv.PeerAgentName
// and semconv.BackendName. Each set of attributes has its own series, so don't add
// attributes with many values, such as request IDs.
//
// A call of Transfer or Error within a sampled span adds exemplars to the
// histograms or to nixl.errors. OTEL_METRICS_EXEMPLAR_FILTER=always_off turns
// exemplars off; always_on is not supported.
//
// The temporality is cumulative, and views of the MeterProvider don't apply.
// Sums stop at 2^63-1.
//
// # Identity
//
// The receiver reports each agent with its own resource. A MeterProvider has only
// one resource, so by default each data point carries the agent's name as the
// attribute nixl.agent.name, and several agents can share a provider. To report an
// agent with the same resource as the receiver would, use [WithNameInResource] and
// a separate provider that has exactly the attributes of [ResourceAttributes]:
//
//	metric.WithResource(resource.NewSchemaless(attributes...))
//
// With package bridge/otlpmetric, pass this option to
// otlpmetric.WithProviderOptions. Its default resource has further attributes that
// describe the process and the SDK.
//
// # Rings and sinks
//
// An agent with a ring needs no pipeline. The program that reads the ring reports
// the metrics; the agent itself only provides [Agent.RingTelemetry]. A ring can't
// carry attributes and exemplars. [WithSinks] passes each event to sinks, in
// addition to a Producer or a ring, or alone; see package bridge/sink.
//
// # Cost
//
// The table shows the time per call as a multiple of one Float64Histogram.Record
// of the SDK, measured in the same run with the same number of goroutines. A
// transfer updates four histograms and up to nine other metrics. No call
// allocates, except in a sampled span.
//
//	call                            1 goroutine   2 goroutines
//	Transfer                        0.5           0.5
//	Transfer, after With            0.5           0.5
//	Transfer, with a ring           0.4           0.4
//	Transfer, in a sampled span     2.4           2.6
//	MemoryRegistered                0.2           0.2
//	Error                           0.1           0.1
//	Event                           0.5           0.5
//	any call of a nil Agent         < 0.1         < 0.1
//
// See BenchmarkAgentRatios. An agent, and each set of attributes passed to
// [Agent.With], takes 10 KB, plus 1.2 KB for each concurrently recording goroutine,
// up to 16. A ring or sinks add two buffers for staged events: 0.5 MB with NIXL's
// default of 4096 slots.
//
// # Installation
//
//	go get github.com/nixl-otel/nixl-otel/bridge/agent
//
// Until the first release, follow the section "Go programs" of the repository's
// README.md instead.
package agent
