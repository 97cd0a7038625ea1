// Package agent is for Go programs that move data as NIXL agents do. An [Agent]
// reports the same metrics as the Collector receiver does for a NIXL agent: the
// same names, kinds, units, attributes and buckets. The metrics go through the
// OpenTelemetry SDK.
//
//	a, err := agent.New("decode-0", agent.WithMeterProvider(provider))
//	if err != nil {
//		return err
//	}
//	defer a.Close()
//
//	a.MemoryRegistered(1 << 30)
//	a.Transfer(agent.Transmit, bytes, postTime, totalTime)
//
// Each call updates these metrics:
//
//	call                        metric
//	Agent.Transfer              nixl.transfer.io, .requests, .size, .duration, .post.duration, .last.…
//	Agent.MemoryRegistered      nixl.memory.registered, .usage, .last.size
//	Agent.MemoryDeregistered    nixl.memory.deregistered, .usage, .last.size
//	Agent.Error                 nixl.errors
//	Agent.Event                 nixl.event.value, nixl.event.last_value
//	Agent.EventsDropped         nixl.telemetry.events.dropped
//	all of them                 nixl.events
//
// The receiver gives each agent its own resource. A MeterProvider has one
// resource, so the agent's name is the attribute nixl.agent.name of every point.
// If the resource of the provider already has it, use [WithNameInResource].
//
// A nil *Agent is valid and does nothing, so instrumented code needs no
// condition.
//
// # Rings and sinks
//
// [WithRing] also writes the events to a ring, for the Collector receiver or any
// other reader of NIXL's rings. [WithSinks] passes them to sinks, see package
// sink.
//
// The SDK converts sums to float64. Past 2^53 (9 petabytes) they are rounded,
// and at 2^63-1024 they stop. The sums of a ring are exact.
//
// # Cost
//
// A transfer takes as long as three Records of the SDK's histogram, about 400
// ns. Every other call takes 5 to 80 ns, also with a ring. No call allocates.
// An agent with a ring and noop.NewMeterProvider leaves the metrics to the reader
// of the ring: then a transfer takes 60 ns. See bench_test.go.
//
// # Lifetime
//
// Shut down the MeterProvider first and close the Agent after it, so that the
// last collection is complete.
//
// An Agent can also be closed and created again while its provider continues. To
// the SDK, a counter is as old as its provider, so counters continue where they
// were: the provider keeps the counts of the newest 200 closed agents. Gauges and
// up-down counters end.
package agent
