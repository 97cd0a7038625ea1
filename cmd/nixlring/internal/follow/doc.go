// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package follow reads rings event by event, over the restarts of their
// agents: one ring ([Ring]) or all of a directory ([Dir]).
//
// Nothing here runs by itself: whoever follows calls Poll as often as events
// are to be seen, and is told by a [Handler] what has come since. An observer
// sees an event only as long as it stands in the ring, or as the agent hasn't
// come round to its slot after a consumer took it, so that it ought to poll
// more often than the agents flush. It misses
//
//   - what a consumer took before the ring was opened,
//   - what a consumer took between a restart of the agent and the poll that
//     joins it,
//   - what the agent has written over by the next poll. That is told only if it
//     happens under the observer's eyes ([ringbuf.ErrLapped]): the positions in
//     a ring don't say how often it went round. Agents from layout v2 on don't
//     write a whole ring within a run interval.
//
// Where the totals of agents are wanted rather than their events, package
// watch keeps them.
package follow
