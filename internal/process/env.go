// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// The variables that configure NIXL agents.
const (
	EnvEnable      = "NIXL_TELEMETRY_ENABLE"
	EnvDir         = "NIXL_TELEMETRY_DIR"
	EnvBufferSize  = "NIXL_TELEMETRY_BUFFER_SIZE"
	EnvRunInterval = "NIXL_TELEMETRY_RUN_INTERVAL"

	EnvExporter     = "NIXL_TELEMETRY_EXPORTER"
	EnvMultiprocDir = "NIXL_TELEMETRY_MULTIPROC_DIR" // directory of the prometheus_mp exporter
	EnvRank         = "NIXL_TELEMETRY_RANK_ENV"      // name of the variable with the agent's rank
)

// Defaults of the variables.
const (
	DefaultRunInterval = 100 * time.Millisecond

	defaultDir        = "/tmp" // before NIXL 0.9.0; later releases have no default
	defaultBufferSize = 4096
	defaultExporter   = "BUFFER" // writes a ring
)

// Env looks up the environment variables of agents, like os.LookupEnv, so that a program in the
// same environment needs no configuration of its own. An empty value counts as unset.
type Env func(name string) (string, bool)

func (e Env) get(name string) (string, bool) {
	if e == nil {
		return "", false
	}
	v, _ := e(name)
	return v, v != ""
}

// Dir returns the directory of the agents' rings.
func (e Env) Dir() string { return cmp.Or(e.SetDir(), defaultDir) }

// SetDir returns the directory of the agents' rings if the variable names it, or else "".
func (e Env) SetDir() string {
	dir, _ := e.get(EnvDir)
	return dir
}

// BufferSize returns the number of slots of an agent's ring.
func (e Env) BufferSize() (int, error) {
	v, ok := e.get(EnvBufferSize)
	if !ok {
		return defaultBufferSize, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || !ValidBufferSize(n) {
		return 0, fmt.Errorf("%s=%s: set a power of two from 2 to %d, for example %d",
			EnvBufferSize, v, ringbuf.MaxCapacity, defaultBufferSize)
	}
	return n, nil
}

// RunInterval returns the time between two flushes of an agent.
func (e Env) RunInterval() (time.Duration, error) {
	v, ok := e.get(EnvRunInterval)
	if !ok {
		return DefaultRunInterval, nil
	}
	ms, err := strconv.ParseUint(v, 10, 32)
	if err != nil || ms == 0 {
		return 0, fmt.Errorf("%s=%s: set whole milliseconds, for example %d", EnvRunInterval, v, DefaultRunInterval.Milliseconds())
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// ValidBufferSize reports whether a ring can have n slots.
func ValidBufferSize(n int) bool {
	return n >= 2 && n <= ringbuf.MaxCapacity && bits.OnesCount(uint(n)) == 1
}

// Enabled reports whether NIXL's telemetry is enabled.
func (e Env) Enabled() bool {
	v, _ := e.get(EnvEnable)
	// convertTraits<bool> of NIXL's src/utils/common/configuration.h
	return slices.ContainsFunc([]string{"y", "yes", "on", "1", "true", "enable"},
		func(yes string) bool { return strings.EqualFold(v, yes) })
}

// WritesRing reports whether agents create a ring in [Env.Dir].
func (e Env) WritesRing() bool {
	exporter, ok := e.get(EnvExporter)
	return e.Enabled() && (!ok || exporter == defaultExporter)
}

// StoreDir returns the directory of the agents' prometheus_mp stores, or "" if they don't
// create stores.
func (e Env) StoreDir() string {
	dir, _ := e.get(EnvMultiprocDir)
	if !e.Enabled() || e.WritesRing() {
		return ""
	}
	return dir
}
