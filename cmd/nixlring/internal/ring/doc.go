// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package ring reads the events of the ring at one path, across restarts of its agent. It is
// for commands that get the path of a ring. Unlike the engine, a [Reader] reads at most as many
// events as the caller asks for, commits them when the caller asks for that, and returns an
// error if the file can't be opened.
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
package ring
