// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package flight keeps the newest events of all agents in memory, and writes them to a
// recording when there is a problem: a slow transfer, an error or a full ring. A recording
// has the events of all agents, because a straggler is only visible next to its peers.
//
// The goroutine that drains the rings appends events to chunks of memory. Another goroutine
// writes recordings. It copies nothing: it marks the chunks, which are then neither freed nor
// reused, and reads what they contained at that time. Agents share the memory, so that one
// container can't push out the events of others; see memory.go.
//
// # Order of files
//
// config.go: keys and limits; chunk.go: how events are stored; memory.go: how much of them;
// recorder.go: when a recording is written; write.go: its content; directory.go: its file.
package flight
