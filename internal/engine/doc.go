// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package engine collects the totals of all NIXL agents on a host. It discovers their rings
// and the stores of NIXL's prometheus_mp exporter, counts their events, and saves
// checkpoints. The receiver, bridge/rings and nixlring use it.
//
// # Reading order
//
// agent.go: what a collection contains; config.go: what is read, and how; engine.go: Start,
// Collect, Stop. Package tally has the table of an agent's points.
//
// The parts are internal: discover finds rings and stores, drain owns and counts them, and
// checkpoint stores their totals. Each has a doc.go.
package engine
