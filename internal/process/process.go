// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/nixlenv"
)

// Config configures a [Scanner].
type Config struct {
	Proc string   // mount point of the proc file system; /proc if empty
	Env  []string // names of additional variables for [Process.Env]
}

// Process is a process that uses NIXL. PID and Start identify it.
type Process struct {
	PID        int
	Start      uint64 // start time, in clock ticks since boot
	NSPID      int    // PID in the process's own PID namespace
	Executable string // file name of the program, without the directory

	Pod       string // UID of the pod; "" if there is none
	Container string // ID of the container; "" if there is none

	// Env holds the variables of NIXL, OpenTelemetry and [Config.Env] that are set.
	Env map[string]string
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

// variables returns the names of the variables to keep.
func (c Config) variables() map[string]bool {
	names := map[string]bool{
		nixlenv.Enable: true, nixlenv.Dir: true, nixlenv.Exporter: true,
		nixlenv.MultiprocDir: true, nixlenv.RankEnv: true,
		serviceName: true, resourceAttributes: true,
	}
	for _, name := range c.Env {
		names[name] = true
	}
	return names
}

// env returns the environment that the process was started with.
func (p Process) env() nixlenv.Env {
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
	// minInterval and maxInterval limit the interval between two examinations of a
	// process. maxIntervalNIXL applies to a process that has libnixl.so mapped, because
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
	// maxUnchanged limits how often in a row the mappings of a process aren't read
	// because their total size is unchanged.
	maxUnchanged = 30
	// maxDirs limits Dirs and Stores. maxCandidates limits the mapped files that are
	// checked for being rings.
	maxDirs, maxCandidates = 16, 64
)

// errHangs means that an examination took too long.
var errHangs = errors.New("reading their memory or their file system takes too long")

// addDir adds a directory to a list, unless the list contains it or is full.
func addDir(list []string, dir string) []string {
	if len(list) == maxDirs || slices.Contains(list, dir) {
		return list
	}
	return append(list, dir)
}
