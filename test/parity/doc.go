// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package parity tests that everything that describes or reports a metric agrees.
//
// The Collector receiver, package agent and package rings report the same metrics
// for the same events, compared as OTLP.
//
// The tests are here because no other package imports both bridge and receiver.
package parity
