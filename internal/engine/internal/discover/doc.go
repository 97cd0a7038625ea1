// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package discover finds rings and opens them for their owner, package drain. It also reads
// the stores of NIXL's prometheus_mp exporter. A store contains totals, so it has no owner: each
// collection reads all of them.
//
// A [Directory] watches one telemetry directory on its own goroutine. That
// goroutine makes every call that may block on the directory's file system: it
// walks, opens, locks, maps, probes and closes. If the file system hangs, only
// this directory is affected. The goroutine keeps no totals. It sends messages to
// the owner of the rings, and the owner returns the rings through [drain.Source].
//
// The goroutine offers each ring that it has opened to the owner, which keeps it or refuses it
// with a reason. The goroutine keeps one record per path. A record has one of these states:
//
//	state     the path has                         it is checked again
//	absent    no file                              when a file appears
//	open      a ring that the owner was offered    when it changes, and by each walk
//	refused   a file that can't be opened, or      at a time that depends on the reason, or
//	          that the owner doesn't keep          when it changes
//
// A record in any state other than open may still have a ring: the file was
// renamed, removed or replaced, but its agent may continue to write to it. The
// owner keeps that ring under the agent's name.
//
// Package discover creates, writes and removes nothing in the directory.
//
// Directories in containers and volumes come and go. A [Finder] finds them, through
// the processes of the host or in the kubelet's directory. A [Watcher] runs a
// Directory for each of them.
//
// # Reading order
//
// A file uses types of earlier files only, except in fields.
//
//   - resource.go, config.go: the configuration of a directory
//   - path.go, refuse.go, open.go, probe.go: single paths, in whatever directory they are
//   - stores.go: the stores in a directory
//   - worker.go, directory.go, walk.go: one directory
//   - identify.go, watcher.go, processes.go, kubelet.go:
//     directories that come and go
package discover
