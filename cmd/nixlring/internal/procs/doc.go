// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package procs finds out from /proc which processes have a ring mapped, which
// of them consumes it, and whether its agent is alive.
//
// The kernel hides other users' mappings from everybody but root, and other PID
// namespaces' processes from everybody inside one. So the answer may be that it
// can't be told.
package procs
