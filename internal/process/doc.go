// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package process finds the processes of NIXL agents on a Linux host, in any
// container, through the proc file system.
//
// [Scanner.Scan] lists the processes. It examines a process when it first sees it, within 15 seconds after an
// exec, and at growing intervals, because it may become an agent later. A process is an
// agent if:
//
//   - its environment makes NIXL write a ring or a prometheus_mp store. The kernel keeps
//     the environment from the start of the process, without variables that Python adds
//     to os.environ later.
//   - it has libnixl*.so, a ring or a store mapped.
//
// [Env] reads the environment of agents, for programs that run in the same one.
//
// # Trust
//
// A container controls its environment, its title, its mappings, its mounts, its files and the
// cgroups below its own. It doesn't control its cgroup, its PID, its start time or the name of its mount
// namespace. Therefore, [Process.Pod] and [Process.Group] come only from the cgroup.
//
//   - Every read has a limit, and so has what is kept of a process.
//   - A process can block every read of its environment or mappings indefinitely, because
//     its memory may be backed by a FUSE file. An examination that takes too long runs on
//     in the background. The number of such examinations is limited per group and per
//     host.
//   - A scan takes a limited share of the time, and groups take turns. So a container or a user
//     with many processes or mappings delays only the examinations of their own processes.
//     [Scanner.Seen] reports which groups a scan has seen completely.
//   - An examination opens /proc/PID once and reads all files relative to it, so they
//     belong to one process even if the PID is reused.
//   - [OpenDir] opens directories below the root of a process, and follows no link out of
//     this root.
//
// # Reading order
//
//   - env.go, process.go: what is found
//   - attributes.go, cgroup.go, environ.go, maps.go, mountinfo.go, stat.go, title.go: the
//     files of /proc, one by one
//   - open.go, examine.go, scan.go: the search
package process
