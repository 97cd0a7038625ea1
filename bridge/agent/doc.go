// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package agent is for Go programs that move data as NIXL agents do. An [Agent]
// reports the metrics that the Collector receiver nixl_shm reports for a NIXL
// agent: the same names, kinds, units, attributes, buckets and start times.
//
// An agent reports in one of two ways. Choose [WithProducer] if your program has
// an OpenTelemetry pipeline, and [WithRing] if a Collector with nixl_shm, or
// another program with bridge/rings, reads the rings of this host. Both at once
// would count everything twice, so [New] rejects the combination, also in two
// agents with the same name.
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
// Package bridge/otlpmetric does the first three lines in one call. An agent and
// its MeterProvider can be closed in any order; the last export is complete.
// A nil *Agent does nothing; leave the agent nil to turn telemetry off.
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
// With [WithSizeClasses], .duration and .post.duration have the attribute
// nixl.transfer.size_class.
//
// [Agent.With] adds attributes to what is recorded, such as
// semconv.PeerAgentName and semconv.BackendName. Each set has series of its own,
// so don't add attributes with many values, such as request IDs.
//
// A call of Transfer or Error within a sampled span leaves exemplars on the
// histograms or on nixl.errors. OTEL_METRICS_EXEMPLAR_FILTER=always_off turns this
// off; always_on is not supported.
//
// The temporality is cumulative, and views of the MeterProvider don't apply.
// Sums stop at 2^63-1.
//
// # Identity
//
// The receiver gives each agent a resource. A MeterProvider has one resource, so
// by default the agent's name is the attribute nixl.agent.name of each data
// point, and several agents can share a provider. To make an agent look the same
// to a backend as if it reported by a ring, use [WithNameInResource] and give it a
// provider of its own, with no resource attributes but those of
// [ResourceAttributes]:
//
//	metric.WithResource(resource.NewSchemaless(attributes...))
//
// With package bridge/otlpmetric, pass this to otlpmetric.WithProviderOptions. The
// default resource also describes the process and the SDK.
//
// # Rings and sinks
//
// An agent with a ring needs no pipeline. The ring's metrics are in the reader;
// the program itself only sees [Agent.RingTelemetry]. Attributes and exemplars
// don't fit into a ring. [WithSinks] passes each event to sinks, in addition to
// a Producer or a ring, or alone; see package bridge/sink.
//
// # Cost
//
// The unit is one Float64Histogram.Record of the SDK, called by as many
// goroutines in the same run. A transfer updates four histograms and up to nine
// other metrics. No call allocates, except in a sampled span.
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
// See BenchmarkAgentRatios. An agent takes 10 KB, and 1.2 KB more for each
// goroutine that records at the same time, up to 16; so does each set of
// [Agent.With]. A ring or sinks add two buffers for staged events, 0.5 MB with
// NIXL's default of 4096 slots.
//
// # Installation
//
//	go get github.com/nixl-otel/nixl-otel/bridge/agent
//
// Until the first release, follow the section "Go programs" of the repository's
// README.md instead.
package agent
