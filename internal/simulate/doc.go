// Package simulate makes NIXL agents that exist on paper only: they write real
// rings, with traffic like that of KV caches, and know exactly what they wrote.
//
// # An agent
//
// An [Agent] does to its ring what a real agent does. It registers memory when
// it starts, stages the events of its transfers, pushes what it staged into
// the ring once per run interval, in one burst, and deregisters when it stops.
// Staging holds as many events as the ring has slots; what exceeds it is
// dropped, by the rules of the release that the layout belongs to:
//
//   - V1 has no bound on staging; only the ring drops.
//   - V2, V2Named and V3 stage the post time by itself and the other three
//     events of a transfer together, and don't tell what they dropped.
//   - V4 stages all four events of a transfer or none, and says after the batch
//     how many events it has dropped, in an event that never was in staging.
//
// A ring that is full drops the newest event, silently.
//
// # Time
//
// An agent lives on a timeline of its own. [Agent.Interval] lets one run
// interval pass at once, and suits tests: nothing waits, nothing depends on a
// clock. [Agent.Run] and [Fleet.Run] do it in real time.
//
// What is drawn is drawn per operation, from the seed alone: the same seed and
// number of operations give the same events, whatever the layout, however fast
// time passes and whatever is dropped. Only the times in rings of layout V1
// come from the clock.
//
// A real-time agent that is behind its schedule, on a busy machine, catches up
// by larger bursts, as far as they fit; it never flushes twice within a run
// interval. So lateness alone drops nothing. A rate that exceeds what staging
// holds per interval does drop events, as it does in a real agent: about
// 10,200 transfers/s at a capacity of 4096 and 100 ms.
//
// # Totals
//
// [Agent.Totals] says what reached the ring and what didn't, and why, by name
// and value, so that a test can compare it with what a reader reports.
package simulate
