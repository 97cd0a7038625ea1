// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package discover finds rings and opens them for their owner, package drain.
//
// A [Directory] watches one telemetry directory on a goroutine of its own, which
// makes every call that may block on that directory's file system: it walks,
// opens, locks, maps, asks the kernel who has a ring open, and closes. If the file
// system hangs, nothing else waits. The goroutine keeps no totals; it sends
// messages to the owner of the rings and gets them back through [drain.Source].
//
// There is one record per path. This is its life:
//
//	state     the path has                   it is looked at again
//	absent    no file                        when one appears
//	open      a ring that its owner has      when it changes, and by each walk
//	refused   a file that can't be opened    soon, then less and less often, or when it changes
//	ignored   no ring, or that of an agent   when it changes
//	          that has exited
//	alias     a ring that is open under      by each walk, until that ring is closed
//	          another path
//
// A path that changes all the time is looked at less and less often.
//
// A record in any state but open may still have a ring: its file was renamed,
// removed or replaced, and the agent may go on writing to it. Its owner keeps it
// under the name that the agent has.
//
// Nothing is created, written or removed in the directory.
//
// In containers and volumes, directories come and go. A [Finder] finds them: through
// the processes of the host, or in the kubelet's directory. [Places] runs a Directory
// for each.
//
// The files read from the bottom up: record.go, rings.go, refuse.go, open.go,
// look.go, pace.go and attend.go know single paths, wherever these come from;
// config.go, walk.go, notify.go and directory.go know a directory; identify.go,
// places.go, processes.go and kubelet.go find directories.
package discover
