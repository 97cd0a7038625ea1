// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/recording"
)

// Limits are the limits of a [Recorder] that users can set.
type Limits struct {
	Bytes       int64         // of all recordings in the directory
	AgentBytes  int64         // of memory for the events of an agent
	MemoryBytes int64         // of memory for the events of all agents
	Interval    time.Duration // between two recordings because of the same agent or container
}

// Defaults are the default limits.
var Defaults = Limits{Bytes: 256 << 20, AgentBytes: 1 << 20, MemoryBytes: 64 << 20, Interval: 10 * time.Minute}

// MinBytes is the lowest value of Limits.Bytes.
const MinBytes = 1 << 20

// The lowest values of the other limits. An agent needs a few chunks, so that it doesn't lose all
// events with the first.
const (
	minAgentBytes = 4 * maxChunk
	minInterval   = Window
)

const (
	// Window is how much a recording contains from before its cause, and after is what it
	// contains from after it.
	Window, after = 30 * time.Second, 5 * time.Second
	// between is the time between two recordings because of different agents: most of them
	// have the same problem.
	between = time.Minute
)

// Check reports the invalid values. Each error starts with the key of the receiver's
// configuration.
func Check(directory string, l Limits) error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf("flight_recorder::"+format, args...)) }
	switch {
	case directory == "":
		add("directory: not set: use a directory for the recordings, such as /var/lib/otelcol-nixl/recordings, or remove flight_recorder")
	case !filepath.IsAbs(directory):
		add("directory: %q must be an absolute path, such as /var/lib/otelcol-nixl/recordings", directory)
	}
	if l.Bytes < MinBytes {
		add("max_bytes: %d is too small: use at least %d, such as %d", l.Bytes, MinBytes, Defaults.Bytes)
	}
	if l.AgentBytes < minAgentBytes {
		add("agent_bytes: %d is too small: use at least %d, such as %d", l.AgentBytes, minAgentBytes, Defaults.AgentBytes)
	}
	if l.MemoryBytes < l.AgentBytes {
		add("memory_bytes: %d is less than agent_bytes (%d): use at least as much, such as %d", l.MemoryBytes, l.AgentBytes, Defaults.MemoryBytes)
	}
	if l.Interval < minInterval {
		add("interval: %v is too short: use at least %v, such as %v", l.Interval, minInterval, Defaults.Interval)
	}
	return errors.Join(errs...)
}

// Config configures a [Recorder].
type Config struct {
	Limits
	Directory string // of the recordings; created if its parent exists
	Tool      string // name and version of the program
	Host      string
	// Compress returns a compressor. It is a parameter so that importing this package adds
	// no zstd library.
	Compress func(io.Writer) (recording.Compressor, error)
	Now      func() time.Time // time.Now if nil
	// Report receives a notice for each recording, and for each that can't be written. It must not block.
	Report func(notice.Notice)
	// Wrote is called after each recording. It may be nil.
	Wrote func(c recording.CauseKind, err error)
}
