// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package simulate runs NIXL agents without NIXL. They write real rings, with
// traffic like that of KV caches, and know exactly what they wrote.
//
// # An agent
//
// An [Agent] writes its ring as a real agent does. It registers memory when it
// starts, stages the events of its transfers, flushes them into the ring once per
// run interval, in one burst, and deregisters the memory when it stops. Staging
// holds as many events as the ring has slots. Events that don't fit are dropped,
// by the rules of the release that the layout belongs to:
//
//   - V1 doesn't limit staging; only the ring drops events.
//   - V2, V2Named and V3 stage the post time separately and the other three
//     events of a transfer together, and don't report drops.
//   - V4 and V5 stage all four events of a transfer or none. After the batch, they
//     report how many events were dropped, in an event that bypasses staging.
//
// A full ring drops the newest event, silently.
//
// # Scenarios
//
// A [Scenario] is a fleet with a property to look for, such as one slow agent of
// several, or a link that degrades. It changes what agents do, not how events are
// written or counted, so that [Totals] are as exact as those of steady traffic.
//
// # Time
//
// An agent has a timeline of its own. [Agent.Interval] lets one run interval pass
// at once. Tests use it: nothing waits, and nothing depends on a clock.
// [Agent.Run] and [Fleet.Run] run in real time.
//
// Every random number belongs to an operation and depends only on the seed: the
// same seed and number of operations give the same events, whatever the layout,
// however fast time passes and whatever is dropped. Only the times in rings of
// layout V1 come from the clock.
//
// A real-time agent that is late, on a busy machine, catches up with larger
// bursts, as far as they fit; it never flushes twice within a run interval.
// Lateness alone drops nothing. A rate that exceeds what staging holds per
// interval drops events, as in a real agent: about 10,200 transfers/s at a
// capacity of 4096 and 100 ms.
//
// # Totals
//
// [Agent.Totals] has what reached the ring and what didn't, and why, by name and
// value, so that a test can compare it with what a reader reports.
package simulate
