// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package top

// Source takes samples of agents. Its methods must not be called concurrently, except for
// Slowest.
type Source interface {
	// Start starts watching. Events from before don't count as new.
	Start() error
	// Sample takes a sample. Errors are in the sample, because a later one may succeed.
	Sample() Sample
	// Slowest returns the slowest transfers of an agent in the last minute, slowest first.
	Slowest(id string) []Transfer
	// Name returns what is watched: a directory, or the host of the agents.
	Name() string
	// Close ends watching.
	Close() error
}
