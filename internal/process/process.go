// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"slices"
	"time"
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
	// Stores are the directories of the process's prometheus_mp stores, as absolute
	// paths in its root.
	Stores []string
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
	examineTimeout = time.Second
	// maxHanging limits the hanging examinations, because each of them occupies a
	// thread. maxHangingGroup limits those of one container.
	maxHanging, maxHangingGroup = 32, 4
	// maxBusy is the time after which the other processes of a container wait for the
	// next scan. A process can delay each read by almost examineTimeout.
	maxBusy = time.Second
	// minInterval and maxInterval limit the interval between two examinations of a
	//  maxIntervalNIXL applies to a process that has libnixl.so mapped, because
	// it is likely to create a ring.
	minInterval, maxInterval, maxIntervalNIXL = time.Second, time.Minute, 5 * time.Second
	// execInterval is the interval between checks for an exec in processes that are
	// older than youngAge. Younger processes are checked by each scan.
	execInterval, youngAge = 15 * time.Second, time.Minute
	// mappingRate limits the bytes of mappings that are read per second. Reading
	// mappings is by far the most expensive part of a scan; at 5 ns/byte, the limit is
	// 0.07% of a core. mappingBurst is enough for the first examinations on a large
	// host.
	mappingRate, mappingBurst = 128 << 10, 256 << 20
	// mappingReserve is the part of mappingBurst that is reserved for containers that have
	// used less than mappingShare lately.
	mappingReserve, mappingShare = mappingBurst / 2, 2 * maxMaps
	// maxUnchanged limits how often in a row the mappings of a process aren't read
	// because their total size is unchanged.
	maxUnchanged = 30
	// maxDirs limits Dirs and Stores. maxCandidates limits the mapped files that are
	// checked for being rings.
	maxDirs, maxCandidates = 16, 64
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
