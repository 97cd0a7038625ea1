// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package chaos has no code of its own, only tests: of the built Collector, in
// trouble. It is killed at any moment, its agents are killed and restart
// with other sizes and layouts, their files are truncated and removed, its
// backend is down, its directory is full of garbage. At the end it must have
// counted what was written: all of it, or all but what was unread when an
// agent or its file went.
//
// `make chaos` builds what is needed and runs the long form. By hand, the short
// one:
//
//	OTELCOL_NIXL=$PWD/dist/otelcol-nixl go -C test test -v ./chaos
//
//	CHAOS_KILLS      times that the Collector is killed   [10 in the short form]
//	CHAOS_DURATION   of the backend's outage               [10s in the short form]
//	CHAOS_SEED       a run's, which it prints; the moments still differ
//
// Without OTELCOL_NIXL they are skipped; where CI=true is set, that is an
// error.
package chaos
