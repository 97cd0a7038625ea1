// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package checkpoint stores the totals of agents, so that a crash of the process loses no
// event and counts no event twice.
//
// The ring serves as the log. First, events are read and counted but stay in the ring.
// Then the totals are stored together with their position. Only then the position is
// committed. After a crash in between, the ring is still at the checkpoint's first
// position, and [Mark.Resume] moves it to the second position without counting the events
// again.
//
// A checkpoint contains only these two positions. So an agent must not have more than one
// save in progress: if a second save began before the first was committed, its first
// position would no longer be the ring's.
//
// # Reading order
//
//   - mark.go, resume.go: the position of the totals, and how a ring with a checkpoint is resumed
//   - encode.go, pages.go: what is stored
//   - saver.go: the goroutine that makes the calls of the storage extension
package checkpoint
