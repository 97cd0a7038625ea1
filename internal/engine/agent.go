// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/nixl-otel/nixl-otel/internal/engine/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/engine/internal/discover"
	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
)

// What a collection contains.
type (
	// Agent identifies an agent, and what is known about it.
	Agent = drain.Agent
	// Holder is the container, the pod or the directory that holds an agent's ring.
	Holder = drain.Holder
	// Snapshot is a copy of the totals of an agent.
	Snapshot = drain.Snapshot
	// Collection has a snapshot of each agent.
	Collection = drain.Collection
	// Up is whether an agent is running.
	Up = drain.Up
	// Handler receives what is read from rings.
	Handler = drain.Handler
)

// The values of [Up].
const (
	UpUnknown = drain.UpUnknown
	UpYes     = drain.UpYes
	UpNo      = drain.UpNo
)

// What finds agents.
type (
	// Processes finds the telemetry directories of all processes.
	Processes = discover.Processes
	// Kubelet finds the emptyDir volumes of pods.
	Kubelet = discover.Kubelet
	// IdentifyBy lists the parts of the identity of agents in pods and containers.
	IdentifyBy = discover.IdentifyBy
)

// Defaults of how agents are found.
const (
	DefaultSearchInterval = discover.DefaultInterval
	DefaultKubeletPods    = discover.DefaultKubeletPods
)

// Where totals are stored.
type (
	// Storage stores checkpoints.
	Storage = checkpoint.Storage
	// Op is an operation of a [Storage].
	Op = checkpoint.Op
)

// Defaults of an empty [IdentifyBy], and of the attributes that
// [Processes] take from agents.
var (
	DefaultIdentifyBy = discover.DefaultIdentifyBy
	DefaultAttributes = discover.DefaultAttributes
)
