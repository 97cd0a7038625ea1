// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package process finds the processes of NIXL agents on a Linux host, in any
// container, through the proc file system.
//
// [Scanner.Scan] lists the processes and examines each of them once, again after
// an exec or when its PID is reused, and at growing intervals in case it becomes
// an agent later. These are the signs of an agent:
//
//   - Its environment makes NIXL write a ring or a prometheus_mp store. The kernel
//     keeps the environment that the process was started with, without what
//     Python adds to os.environ.
//   - It has libnixl*.so, a ring or a store mapped.
//
// # What can be trusted
//
// A container controls its environment, its mappings, its mounts and its files.
// It doesn't control its cgroup, its PID, its start time or the name of its
// mount namespace, so [Process.Pod] and [Process.Container] come from the cgroup
// only; see [ParseCgroup].
//
//   - Everything that is read has a limit, and of the environment only variables
//     on a list are kept.
//   - Every read of a process can block for as long as the process wants: its
//     memory may be that of a FUSE file. An examination that takes too long is
//     left alone and counts as failed until it ends. Only a few processes of one
//     container, and of the host, may be in this state.
//   - An examination opens /proc/PID once and reads relative to it, so that
//     whatever it reads belongs to one process even if the PID is reused.
//   - Files are opened below the root of the process by [OpenFolder], and nothing
//     leads out of this root.
package process
