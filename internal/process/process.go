// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/nixlenv"
)

// Config says how processes are found.
type Config struct {
	Proc string   // where the proc file system is mounted; /proc if empty
	Env  []string // names of further variables that [Process.Env] has
}

// Process is a process that uses NIXL. PID and Start identify it.
type Process struct {
	PID        int
	Start      uint64 // when it started, in clock ticks since boot
	NSPID      int    // its PID in its own namespace
	Executable string // name of its program, without the directory

	Pod       string // UID of its pod, "" if it is in none
	Container string // ID of its container, "" if it is in none

	// Env holds the variables of NIXL, OpenTelemetry and [Config.Env] that are set.
	Env map[string]string
	// MountNS identifies the process's mount namespace, its root, and its container:
	// the kernel gives the name of a namespace to another one as soon as the
	// first has ended. Paths mean the same to processes that have this in common.
	MountNS string
	// Dirs are the directories in which it has rings, or is going to have them,
	// as absolute paths in its root. Use [OpenFolder].
	Dirs []string
	// Stores are its directories of prometheus_mp stores.
	Stores []string
}

// otelVariables state resource attributes in the way that all OpenTelemetry SDKs
// understand.
const (
	serviceName        = "OTEL_SERVICE_NAME"
	resourceAttributes = "OTEL_RESOURCE_ATTRIBUTES"
)

// variables returns the names of the variables that are kept.
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

// env is the environment that the process was started with.
func (p Process) env() nixlenv.Env {
	return func(name string) (string, bool) {
		v, ok := p.Env[name]
		return v, ok
	}
}

const (
	// patience is how long an examination may take before Scan goes on without it.
	patience = time.Second
	// maxHanging limits the examinations that haven't returned, of which each
	// occupies a thread, and maxHangingGroup those of one container.
	maxHanging, maxHangingGroup = 32, 4
	// firstWait and lastWait limit the intervals at which a process is examined
	// again. One that has libnixl.so mapped is likely to create a ring.
	firstWait, lastWait, lastWaitNIXL = time.Second, time.Minute, 5 * time.Second
	// execInterval is how often it is found out whether a process runs another
	// program than before, once it is no longer young.
	execInterval, youth = 15 * time.Second, time.Minute
	// mappingRate limits how much is read of the mappings of processes, which is
	// by far the most expensive part, in bytes per second. At 5 ns/byte, this is
	// 0.07% of a core. mappingBurst is enough for the first examinations on a large
	// host.
	mappingRate, mappingBurst = 128 << 10, 256 << 20
	// maxUnchanged limits how often in a row the mappings of a process are taken for
	// unchanged because their size is.
	maxUnchanged = 30
	// maxDirs limits Dirs and Stores. maxCandidates limits the files that are
	// looked at because they may be rings.
	maxDirs, maxCandidates = 16, 64
)

// errHangs is an examination that has taken too long.
var errHangs = errors.New("their memory or their file system doesn't answer")

// addDir adds a directory to a list, unless the list has it or is full.
func addDir(list []string, dir string) []string {
	if len(list) == maxDirs || slices.Contains(list, dir) {
		return list
	}
	return append(list, dir)
}
