// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package diagnose finds out from the totals of NIXL agents which agents are slow, hang, fail or
// lose telemetry, and says what to do.
//
// [Now], [Watched] and [Held] are functions of frames: the totals of all agents at some times. The recording
// rules and alerts in dashboards/ have the same definitions and the same limits; tests feed both
// with the same fleets.
//
// # Speed
//
// The speed of an agent is its mean throughput: the bytes of its transfers divided by the sum of
// their times. It doesn't depend on the bounds of buckets, and idle time doesn't count. An agent is
// only compared if it completed at least [MinTransfers] transfers in the window.
//
// Small transfers have a lower speed than large ones, without being slow. So agents are compared
// only with peers: agents of the same job (cluster, namespace and service) with a similar mean
// size. Similar means that both sizes are in the same band: a range of sizes by a factor of 16.
// Each size is in two bands, so that sizes that differ by less than a factor of 4 share a band. And an
// agent is slow only if its speed is low and its transfers also take longer. An agent with smaller
// blocks than its peers has a lower speed, but its transfers take less time.
//
// # Order of files
//
// frame.go, histogram.go: frames; limits.go: limits and windows; history.go: totals over time; kinds.go: what is found, and
// what to do about it; finding.go: findings; straggler.go, past.go, stalled.go, transfers.go, telemetry.go, unknown.go, path.go,
// health.go, process.go: one topic each, with definitions and texts; diagnose.go: all of them, and since when; check.go:
// what they can't judge.
package diagnose
