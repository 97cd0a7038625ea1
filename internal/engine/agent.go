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
	// Snapshot is a copy of the totals of an agent.
	Snapshot = drain.Snapshot
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
	// State is the state of an [Engine], for telemetry and health checks.
	State = discover.State
	// Processes finds the telemetry directories of all processes.
	Processes = discover.Processes
	// Kubelet finds the emptyDir volumes of pods.
	Kubelet = discover.Kubelet
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

// Defaults of an empty [discover.IdentifyBy], and of the attributes that
// [Processes] take from agents.
var (
	DefaultIdentifyBy = discover.DefaultIdentifyBy
	DefaultAttributes = discover.DefaultAttributes
)
