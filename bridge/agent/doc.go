// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package agent reports the telemetry of Go programs that move data as NIXL
// agents do. An [Agent] reports the metrics that the Collector receiver nixl_shm
// reports for a NIXL agent, with the same names, kinds, units, attributes and
// buckets.
//
// An agent reports in one of two ways: through the program's MeterProvider, or with
// [WithRing] through a ring that a Collector with nixl_shm, or another program with
// bridge/rings, reads on this host. With both, for example in two agents of one name, a
// backend would count every event twice.
//
//	a, err := agent.New("decode-0", agent.WithMeterProvider(provider))
//	if err != nil {
//		return err
//	}
//	defer a.Close()
//
//	a.MemoryRegistered(ctx, 1<<30)
//	a.Transfer(ctx, agent.Transmit, bytes, postTime, totalTime)
//
// # Metrics
//
//	call                        metrics
//	New, Agent.Close            nixl.agent.up
//	Agent.Transfer              nixl.transfer.io, .requests, .size, .duration, .post.duration, .throughput, .last.…
//	Agent.MemoryRegistered      nixl.memory.registered, .usage, .last.size
//	Agent.MemoryDeregistered    nixl.memory.deregistered, .usage, .last.size
//	Agent.Error                 nixl.errors
//	Agent.EventsDropped         nixl.telemetry.events.dropped
//	Agent.Event                 nixl.event.value, .last_value
//
// The metrics are instruments of the SDK. Views, temporality, cardinality limits,
// aggregations and exemplars of the MeterProvider apply to them. The series of a closed agent
// stay until the MeterProvider is shut down. A MeterProvider has series for the first 10,000
// names, of 6 KB each; all other agents report under otel.metric.overflow = true.
//
// The receiver reports each agent with its own resource. A MeterProvider has only
// one resource, so each data point carries the agent's name as the attribute
// nixl.agent.name, and several agents can share a provider.
//
// Each agent has a series of nixl.errors for each of the 12 types, so from 167 agents
// on, their series reach the SDK's default limit of 2,000 per instrument, and the SDK
// counts the errors of any beyond it without their attributes. Raise it with
// sdkmetric.WithCardinalityLimit.
//
// # Rings and sinks
//
// An agent with a ring needs no pipeline. The program that reads the ring reports
// the metrics; the agent itself only provides [Agent.RingTelemetry]. A ring can't
// carry exemplars. [WithSinks] passes each event to sinks, in
// addition to a MeterProvider or a ring; see package bridge/sink.
//
// If a ring or a sink fails, OpenTelemetry's error handler gets the first error until a
// flush succeeds. The events are lost, and counted as dropped.
//
// # Cost
//
// A transfer through a MeterProvider costs what the SDK's two counters and four histograms
// cost; to a ring, less than one of these histograms. No call allocates, except in a sampled
// span. A name takes 6 KB, in addition to the SDK's series. A ring or sinks add two buffers
// for staged events: 0.5 MB with NIXL's default of 4096 slots. bridge/README.md in the
// repository has the figures, and shows how to install this package.
package agent
