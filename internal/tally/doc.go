// Package tally turns the events of one NIXL agent into its totals: counters,
// last values, histograms, and what can be told of events that were lost.
//
// An [Agent] takes batches straight from the ring ([Agent.Add]) and never
// allocates on the way, but for the first event of a name that it hasn't seen.
// Everything is kept as integers, in the units of the ring (bytes,
// microseconds), and becomes floating point only when it is asked for.
//
// Totals only grow: they outlive a restart of the agent, so that nothing that
// was counted between the last export and the restart is lost. What describes
// the present, [Agent.MemoryUsage], starts at zero with the agent.
//
// # Speed
//
// A ring holds whole transfers mostly, of values that are like those before.
// These are counted in runs, at about four times the cost of copying them; see
// transfers.go. What is a new minimum or maximum, a group that is cut, or any
// other event goes through the same totals one by one. Older layouts are
// translated to the newest on the way.
//
// # What counts as what
//
// An event counts towards a metric of the catalogue only where its type, or
// its category and name, say so without contradiction. Every other event is
// kept apart as a [Series] of its own, and past a limit on their number in
// [Agent.Overflow]. No event is dropped.
package tally
