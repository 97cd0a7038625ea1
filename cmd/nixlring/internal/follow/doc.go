// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package follow reads the events of one ring ([Ring]) or of all rings in a directory
// ([Dir]), across restarts of their agents.
//
// The package starts no goroutines. The caller calls Poll periodically, which passes new
// events to a [Handler]. An observer only sees an event until it is overwritten, so it
// should poll more often than the agents flush. It misses events that
//
//   - were consumed before the ring was opened,
//   - were consumed between a restart of the agent and the next poll,
//   - were consumed and overwritten between two polls. This is only reported
//     ([ringbuf.ErrLapped]) if it happens during a poll, because the positions in a ring
//     don't count its rounds. Agents with layout v2 and later don't write a whole ring
//     within a run interval.
package follow
