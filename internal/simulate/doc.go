// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package simulate simulates NIXL agents. They write real rings with traffic like that of KV
// caches, and a journal of what they wrote.
//
// # An agent
//
// An [Agent] writes its ring like a real agent. It registers memory when it starts, stages the
// events of its transfers, flushes them into the ring in one burst per run interval, and
// deregisters the memory when it stops. Staging holds as many events as the ring has slots.
// Events that don't fit are dropped according to the rules of the layout's release:
//
//   - V1 doesn't limit staging; events are dropped only if the ring is full.
//   - V2 and V3 stage the post time separately and the other three
//     events of a transfer together, and don't report drops.
//   - V4 stages all four events of a transfer or none. After the batch, it
//     reports the number of dropped events in an event that bypasses staging.
//
// If the ring is full, the newest event is dropped silently.
//
// # Scenarios
//
// A [Scenario] is a fleet that demonstrates a problem, such as one slow agent among several, or
// a link that degrades. It changes the traffic of agents, but not how events are written or
// counted, so the journal is as exact as for steady traffic.
//
// # Time
//
// An agent has its own timeline. [Agent.Interval] advances it by one run interval without
// waiting, for tests that don't depend on a clock. [Agent.Run] and [Fleet.Run] run in real
// time.
//
// Every random number belongs to an operation and depends only on the seed. So the same seed
// and number of operations give the same events for every layout and speed, even if events are
// dropped. Only the times in rings of layout V1 come from the clock.
//
// If an agent is late on a busy machine, it catches up with larger bursts as long as they fit.
// It never flushes twice within a run interval. Being late doesn't drop events. As in a real
// agent, a rate that exceeds the capacity of staging per interval drops events: about 10,200
// transfers/s at a capacity of 4096 and a run interval of 100 ms.
//
// # Journal
//
// [Config.Journal] gets the events that reached the ring, in order. Tests compare its points with
// those of a reader. [Totals] count events, also those that didn't reach the ring.
package simulate
