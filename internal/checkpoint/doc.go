// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package checkpoint stores the totals of agents so that they survive a crash
// of the process that keeps them, and no event is counted twice or lost.
//
// The ring itself is the log. Events are read and counted, and stay in the
// ring; then the totals are stored together with the position that they reach;
// only then the position is committed. After a crash in between, the ring's
// position is still where the checkpoint came from, and [Mark.Resume]
// moves it to where the checkpoint leads without counting the events again.
//
// Two positions are all that a checkpoint knows. So there must be at most one
// save of an agent that isn't done: a second one, made before the first was
// committed, would lead from a position that the ring has left by the time it
// is read.
//
// # Reading order
//
//   - store.go: what a store has to do
//   - mark.go, resume.go: the format, and how a ring that has a checkpoint is
//     resumed
//   - index.go, queue.go: what the saver does next, without a goroutine or a clock
//   - saver.go: the goroutine that makes the calls
package checkpoint
