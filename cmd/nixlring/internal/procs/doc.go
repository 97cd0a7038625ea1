// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package procs reads /proc to determine which processes have a ring mapped, which of them
// is the consumer, and whether the agent is running.
//
// Only root can see the mappings of other users' processes, and processes in a PID
// namespace can't see those outside of it. So the result may be unknown.
package procs
