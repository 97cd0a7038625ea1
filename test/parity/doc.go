// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package parity has no code of its own, only a test that both roads lead to
// the same place: what an agent in Go reports through package agent and the
// SDK is, as OTLP, what the Collector's receiver makes of the same events in
// a ring.
//
// It stands apart because bridge and receiver never meet anywhere else.
package parity
