// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package nixlenv reads the environment variables that NIXL agents are set up
// with, so that what runs beside an agent has its settings without being told.
package nixlenv

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// The variables. NIXL's guide to the buffer plug-in names another one for the
// directory, which no release was seen to read; it is a second name here.
const (
	Enable      = "NIXL_TELEMETRY_ENABLE"
	Dir         = "NIXL_TELEMETRY_DIR"
	OutputPath  = "NIXL_TELEMETRY_EXPORTER_OUTPUT_PATH"
	BufferSize  = "NIXL_TELEMETRY_BUFFER_SIZE"
	RunInterval = "NIXL_TELEMETRY_RUN_INTERVAL"
)

// What holds where a variable isn't set.
const (
	DefaultDir         = "/tmp" // of NIXL before 0.9.0; later ones have no default
	DefaultBufferSize  = 4096
	DefaultRunInterval = 100 * time.Millisecond
)

// Env is an environment: os.LookupEnv, or a test's. An empty value is as good
// as none.
type Env func(name string) (string, bool)

func (e Env) get(name string) (string, bool) {
	if e == nil {
		return "", false
	}
	v, _ := e(name)
	return v, v != ""
}

// Dir is the directory that agents make their rings in.
func (e Env) Dir() string {
	for _, name := range []string{Dir, OutputPath} {
		if dir, ok := e.get(name); ok {
			return dir
		}
	}
	return DefaultDir
}

// BufferSize is the number of slots of an agent's ring.
func (e Env) BufferSize() (int, error) {
	v, ok := e.get(BufferSize)
	if !ok {
		return DefaultBufferSize, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || !ValidBufferSize(n) {
		return 0, fmt.Errorf("%s=%s: a number of events is needed that is a power of two, like %d, and at most %d",
			BufferSize, v, DefaultBufferSize, ringbuf.MaxCapacity)
	}
	return n, nil
}

// RunInterval is the time between two flushes of an agent.
func (e Env) RunInterval() (time.Duration, error) {
	v, ok := e.get(RunInterval)
	if !ok {
		return DefaultRunInterval, nil
	}
	const most = math.MaxInt64 / int64(time.Millisecond)
	ms, err := strconv.ParseInt(v, 10, 64)
	if err != nil || ms < 1 || ms > most {
		return 0, fmt.Errorf("%s=%s: whole milliseconds are needed, like %d", RunInterval, v, DefaultRunInterval.Milliseconds())
	}
	return time.Duration(ms) * time.Millisecond, nil
}
