// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Agent identifies an agent and locates its ring or its store. An agent that restarts may
// have another ring, at another path, under the same ID, but each of its processes has a
// store of its own.
type Agent struct {
	// ID identifies the agent everywhere, including in checkpoints and in its
	// service.instance.id. It is the path of its ring unless its source has a more
	// stable one. It contains no NUL.
	ID   string
	Name string // name of the ring's file, relative to Dir
	Dir  string // the telemetry directory, as the agent sees it
	Path string // path of the ring, as this process sees it
	// Resource describes the agent. It contains what identifies the agent, such as its
	// pod.
	Resource attribute.Set
	// Process describes the agent's process, and its container unless that identifies
	// the agent. It changes when the agent restarts.
	Process attribute.Set
	Holder  Holder
	// Attribution is how much of the above is known.
	Attribution Attribution
}

// Attribution is how much is known about the process that has an agent's ring mapped.
type Attribution uint8

// The values of [Attribution].
const (
	Known  Attribution = iota // everything
	Partly                    // it is known, but not its environment
	Left                      // no process has the ring mapped; another one may have left it
	// Sought means that discovery searches for the process, and the ID may change. Until [Attributed]
	// reports the result, the agent is drained, but not exported, except by the last collection without storage.
	Sought
)

// Holder is the container, the pod or the directory that holds an agent's ring, according
// to the kernel or the kubelet. Everything in it may be under the same control, so limits
// apply to holders.
type Holder struct {
	Pod       string // UID; "" if unknown
	Container string // ID; "" if unknown
	// Place is a mount namespace or a directory, if neither is known.
	Place string
	// Shared marks a directory that agents of several containers may share.
	Shared bool
}

// Isolated reports whether the holder is a container or a pod, or looks like one. Everything
// else is configured.
func (h Holder) Isolated() bool { return !h.Shared && h != (Holder{}) }

// shortID is the length of a container's ID as container runtimes print it.
const shortID = 12

// String returns the name of the holder for messages.
func (h Holder) String() string {
	container := h.Container
	if len(container) > shortID {
		container = container[:shortID]
	}
	switch {
	case h.Pod != "" && container != "":
		return fmt.Sprintf("container %s of pod %s", container, h.Pod)
	case container != "":
		return "container " + container
	case h.Pod != "":
		return "pod " + h.Pod
	case h.Shared:
		return "directory " + h.Place
	default:
		return "mount namespace " + h.Place
	}
}

// Snapshot is a copy of the state of an agent.
type Snapshot struct {
	Agent
	Layout ringbuf.Layout
	// Stream is what Config.Stream has returned for the totals.
	Stream attribute.Set
	Start  time.Time // start of the totals
	End    time.Time // end of a stream that has ended; zero for the agent's current stream
	Up     Up
	Totals *tally.Totals
	// Store is set if the totals are those in a store of NIXL's prometheus_mp exporter: of
	// one process of the agent, which has no ring.
	Store bool
}

// LayoutName returns the layout of the agent's ring or store.
func (s *Snapshot) LayoutName() string {
	if s.Store {
		return semconv.LayoutStore
	}
	return s.Layout.String()
}

// Up states whether another process has an agent's ring open, according to the kernel.
type Up uint8

// The values of [Up].
const (
	UpUnknown Up = iota // unknown to the kernel, or not checked yet
	UpNo                // no other process has it open
	UpYes               // another process has it open
)
