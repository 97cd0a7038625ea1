// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/files"
)

// Config configures a [Scanner].
type Config struct {
	Proc string   // mount point of the proc file system; /proc if empty
	Env  []string // names of additional variables for [Process.Env]

	// Attributes are patterns of the keys that are taken from OTEL_RESOURCE_ATTRIBUTES, as
	// in [path.Match]. Reserved are keys that aren't, besides those that [Config.allows]
	// rejects.
	Attributes, Reserved []string
}

// Process is a process that uses NIXL. PID and Start identify it.
type Process struct {
	PID        int
	Start      uint64 // start time, in clock ticks since boot
	Executable string // file name of the program, without the directory

	Pod       string // UID of the pod; "" if there is none
	Container string // ID of the innermost container; "" if there is none
	// ContainerName is the container's name in its pod; "" if there is none.
	ContainerName string
	// Unit is the cgroup below the container, or below the root, such as that of a service of systemd.
	Unit string
	// Group is the outermost container; without one, the user or the cgroup. The processes of a group may be
	// under the same control.
	Group string

	Agent bool // it has libnixl.so mapped, or its environment enables NIXL's telemetry
	// Rank is the rank in the title of the process; "" if there is none.
	Rank string
	// Own and Known report whether Env and Attributes are those of the process itself, and whether any are known.
	Own, Known bool
	// Env holds the variables of NIXL and [Config.Env] that are set.
	Env map[string]string
	// Attributes are the resource attributes that the process sets in
	// OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME, as far as it may set them.
	Attributes map[string]string
	// MountNS identifies the process's mount namespace, its root, and its container.
	// The container is included because the kernel reuses the names of namespaces. A
	// path refers to the same file in all processes with equal MountNS.
	MountNS string
	// Dirs are the directories in which the process has rings or prometheus_mp stores, or is
	// expected to create them, as absolute paths in its root. Use [OpenDir] to open them.
	Dirs []string
	// Files are the rings and the prometheus_mp stores that the process has mapped for writing.
	Files []File
}

// File is a file that a process has mapped.
type File struct {
	files.ID
	Path string // in the root of the process
}

const (
	// A scan examines processes for at most one part in scanShare of the time since the last
	// one, but between minScan and maxScan. Reading mappings takes 5 ns per byte.
	scanShare, minScan, maxScan = 16, 100 * time.Millisecond, time.Second
	// examineTimeout is the time after which a scan continues without an examination.
	examineTimeout = 500 * time.Millisecond
	// maxHanging limits the examinations that are still running, because each of them
	// occupies a thread and up to 1 MiB. maxHangingGroup limits those of one container, so that
	// it takes 64 hostile containers to delay others.
	maxHanging, maxHangingGroup = 128, 2
	// minInterval and maxInterval limit the interval between two examinations of a process.
	// maxIntervalNIXL applies to a process that is likely to create a ring.
	minInterval, maxInterval, maxIntervalNIXL = time.Second, time.Minute, 5 * time.Second
	// A process that doesn't use NIXL is visited, to see whether it has executed another program, after one part in
	// visitShare of that interval: at least every 15 seconds.
	visitShare = 4
	// maxUnchanged limits how often in a row a process isn't examined because the total size
	// of its mappings is unchanged.
	maxUnchanged = 30
)

// Limits of what is kept of a process.
const (
	maxPath  = 1 << 10 // bytes of a directory's path
	maxDirs  = 16      // of Dirs
	maxFiles = 256     // of Files
)

// ErrExited means that a process has exited. Its PID may have been reused.
var ErrExited = errors.New("process has exited")

// errHangs means that an examination took too long.
var errHangs = errors.New("reading their memory or their file system takes too long")

// addDir adds a directory, unless there are too many.
func (p *Process) addDir(dir string) {
	if len(p.Dirs) < maxDirs && !slices.Contains(p.Dirs, dir) {
		p.Dirs = append(p.Dirs, dir)
	}
}

// Maps reports whether a process has a ring or a store mapped.
func (p *Process) Maps(id files.ID) bool {
	return slices.ContainsFunc(p.Files, func(f File) bool { return f.ID == id })
}

// Precedes reports whether a process rather than another one is the agent of a file that both have mapped, because a
// child inherits mappings, and a Collector has those of all rings.
func (p *Process) Precedes(other Process) bool {
	if p.Agent != other.Agent {
		return p.Agent
	}
	return p.Start < other.Start
}
