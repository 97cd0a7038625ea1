// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package discover finds rings and opens them for their owner, package drain. It also reads
// the stores of NIXL's prometheus_mp exporter. A store contains totals, so it has no owner: each
// collection reads all of them.
//
// A [Finder] finds directories: those that are configured, those of all processes of the host, or
// the volumes in the kubelet's directory. A [Watcher] runs a [Directory] for each of them, on a
// goroutine of its own. That goroutine makes every call that may block on the directory's
// file system: it walks, opens, locks, maps, probes and closes. If the file system hangs, only
// this directory is affected. The goroutine keeps no totals. It sends messages to
// the owner of the rings, and the owner returns the rings through [drain.Source].
//
// The goroutine offers each ring that it has opened to the owner, which keeps it or refuses it
// with a reason. The goroutine keeps one record per path. A record has one of these states:
//
//	state     the path has                         it is checked again
//	absent    no file                              when a file appears
//	open      a store, or a ring that the owner    when its directory changes
//	          keeps
//	refused   a file that can't be opened, or      at a time that depends on the reason, or
//	          that the owner doesn't keep          when it changes
//
// A record in any state other than open may still have a ring or a store: the file was
// renamed, removed or replaced, but its agent may continue to write to it. The
// owner keeps that ring under the agent's name.
//
// Package discover creates, writes and removes nothing in the directory.
//
// # Reading order
//
//   - resource.go, config.go: the configuration
//   - directory.go, walk.go: the goroutine of a directory
//   - path.go, offer.go, refuse.go, stores.go: what happens to each file
//   - identify.go: identities of agents
//   - watcher.go, kubelet.go, processes.go: directories that come and go
package discover
