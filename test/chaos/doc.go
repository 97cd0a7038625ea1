// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package chaos tests the built Collector under faults. The Collector is killed at any time, agents
// are killed and restart with other sizes and layouts, their files are truncated and removed, the
// backend is down, and the directory is full of invalid files. At the end, the Collector must have
// counted all written events, except events that were unread when an agent restarted or its file
// was removed.
//
// `make chaos` builds the Collector and runs the long version. To run the short version by hand:
//
//	OTELCOL_NIXL=$PWD/dist/otelcol-nixl go -C test test -v ./chaos
//
//	CHAOS_DURATION   how long failures happen [10s]
//	CHAOS_SEED       seed of a run, which it prints; timing still differs
//
// Without OTELCOL_NIXL, the tests are skipped, or fail if CI=true.
package chaos
