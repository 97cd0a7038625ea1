// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package nixlenv reads the environment variables that configure NIXL agents, so that a
// program in the same environment needs no configuration of its own.
package nixlenv

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// The variables. NIXL's guide to the buffer plug-in uses OutputPath for the directory. No
// NIXL release that we tested reads it; this package accepts both.
const (
	Enable      = "NIXL_TELEMETRY_ENABLE"
	Dir         = "NIXL_TELEMETRY_DIR"
	OutputPath  = "NIXL_TELEMETRY_EXPORTER_OUTPUT_PATH"
	BufferSize  = "NIXL_TELEMETRY_BUFFER_SIZE"
	RunInterval = "NIXL_TELEMETRY_RUN_INTERVAL"
)

// Defaults of the variables.
const (
	DefaultDir         = "/tmp" // before NIXL 0.9.0; later releases have no default
	DefaultBufferSize  = 4096
	DefaultRunInterval = 100 * time.Millisecond
)

// Env looks up environment variables, like os.LookupEnv. An empty value counts as unset.
type Env func(name string) (string, bool)

func (e Env) get(name string) (string, bool) {
	if e == nil {
		return "", false
	}
	v, _ := e(name)
	return v, v != ""
}

// Dir returns the directory of the agents' rings.
func (e Env) Dir() string {
	for _, name := range []string{Dir, OutputPath} {
		if dir, ok := e.get(name); ok {
			return dir
		}
	}
	return DefaultDir
}

// BufferSize returns the number of slots of an agent's ring.
func (e Env) BufferSize() (int, error) {
	v, ok := e.get(BufferSize)
	if !ok {
		return DefaultBufferSize, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || !ValidBufferSize(n) {
		return 0, fmt.Errorf("%s=%s: set a power of two from 2 to %d, for example %d",
			BufferSize, v, ringbuf.MaxCapacity, DefaultBufferSize)
	}
	return n, nil
}

// RunInterval returns the time between two flushes of an agent.
func (e Env) RunInterval() (time.Duration, error) {
	v, ok := e.get(RunInterval)
	if !ok {
		return DefaultRunInterval, nil
	}
	const most = math.MaxInt64 / int64(time.Millisecond)
	ms, err := strconv.ParseInt(v, 10, 64)
	if err != nil || ms < 1 || ms > most {
		return 0, fmt.Errorf("%s=%s: set whole milliseconds, for example %d", RunInterval, v, DefaultRunInterval.Milliseconds())
	}
	return time.Duration(ms) * time.Millisecond, nil
}
