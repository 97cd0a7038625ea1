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
	// Stopped cancels scans when it is closed; nil for never.
	Stopped <-chan struct{}

	// Attributes are patterns of the keys that are taken from OTEL_RESOURCE_ATTRIBUTES, as
	// in [path.Match]. Reserved are keys that aren't, besides those that [filter.allows]
	// rejects.
	Attributes, Reserved []string
}

// Process is a process that uses NIXL. PID and Start identify it.
type Process struct {
	PID        int
	Start      uint64 // start time, in clock ticks since boot
	NSPID      int    // PID in the process's own PID namespace
	Executable string // file name of the program, without the directory

	Pod       string // UID of the pod; "" if there is none
	Container string // ID of the container; "" if there is none
	// ContainerName is the container's name in its pod; "" if there is none.
	ContainerName string

	// Env holds the variables of NIXL and [Config.Env] that are set.
	Env map[string]string
	// Attributes are the resource attributes that the process sets in
	// OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME, as far as it may set them.
	Attributes map[string]string
	// MountNS identifies the process's mount namespace, its root, and its container.
	// The container is included because the kernel reuses the names of namespaces. A
	// path refers to the same file in all processes with equal MountNS.
	MountNS string
	// Dirs are the directories in which the process has rings or is expected to create
	// them, as absolute paths in its root. Use [OpenDir] to open them.
	Dirs []string
	// Mapped are the files that the process has mapped and that may be rings.
	Mapped []Mapped
	// Stores are the directories of the process's prometheus_mp stores, as absolute
	// paths in its root.
	Stores []string
}

// Mapped is a file that a process has mapped for writing.
type Mapped struct {
	ID   files.ID
	Path string // absolute path in the process's root
}

// Maps reports whether a process has a file mapped. On overlayfs, old kernels show the inode of
// the layer below, and on Btrfs, the device differs, so an equal path also counts.
func (p *Process) Maps(id files.ID, path string) bool {
	return slices.ContainsFunc(p.Mapped, func(m Mapped) bool { return m.ID == id || m.Path == path })
}

// Variables in which OpenTelemetry SDKs expect resource attributes.
const (
	serviceName        = "OTEL_SERVICE_NAME"
	resourceAttributes = "OTEL_RESOURCE_ATTRIBUTES"
)

// maxPath limits the bytes of variables that hold a path.
const maxPath = 4 << 10

// variables returns the names of the variables to read, with the maximum length of their
// values.
func (c Config) variables() map[string]int {
	names := make(map[string]int)
	for _, name := range c.Env {
		names[name] = MaxAttribute
	}
	for _, name := range []string{EnvEnable, EnvExporter, EnvRank, serviceName} {
		names[name] = MaxAttribute
	}
	names[EnvDir], names[EnvMultiprocDir], names[resourceAttributes] = maxPath, maxPath, lineSize
	return names
}

// env returns the environment that the process was started with.
func (p Process) env() Env {
	return func(name string) (string, bool) {
		v, ok := p.Env[name]
		return v, ok
	}
}

const (
	// examineTimeout is the time after which Scan continues without an examination.
	examineTimeout = 500 * time.Millisecond
	// maxSlow limits how many examinations exceed examineTimeout in a scan.
	maxSlow = 4
	// maxHanging limits the examinations that are still running, because each of them
	// occupies a thread. maxHangingGroup limits those of one container.
	maxHanging, maxHangingGroup = 32, 4
	// A scan examines processes for at most one part in scanShare of the time since the last
	// one, but between minScan and maxScan. Reading mappings takes 5 ns per byte.
	scanShare, minScan, maxScan = 16, 100 * time.Millisecond, time.Second
	// minInterval and maxInterval limit the interval between two examinations of a process.
	// maxIntervalNIXL applies to a process that has libnixl.so mapped, because it is likely to
	// create a ring.
	minInterval, maxInterval, maxIntervalNIXL = time.Second, time.Minute, 5 * time.Second
	// maxUnchanged limits how often in a row a process isn't examined because the total size
	// of its mappings is unchanged.
	maxUnchanged = 30
	// maxDirs limits Dirs and Stores.
	maxDirs = 16
	// maxMapped limits Mapped.
	maxMapped = 256
)

// ErrStopped means that a scan was canceled.
var ErrStopped = errors.New("search was stopped")

// errHangs means that an examination took too long.
var errHangs = errors.New("reading their memory or their file system takes too long")

// addDir adds a directory to a list, unless the list contains it or is full.
func addDir(list []string, dir string) []string {
	if len(list) == maxDirs || slices.Contains(list, dir) {
		return list
	}
	return append(list, dir)
}
