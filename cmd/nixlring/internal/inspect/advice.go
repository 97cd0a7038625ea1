// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/recorder"
	"github.com/nixl-otel/nixl-otel/internal/mpstore"
	"github.com/nixl-otel/nixl-otel/internal/process"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func (r *Report) advice(format string, args ...any) {
	r.Advice = append(r.Advice, fmt.Sprintf(format, args...))
}

// adviseUnreadable gives advice about a file that can't be read as a ring or store.
func (r *Report) adviseUnreadable(err error) {
	switch {
	case recorder.Is(r.Path):
		r.advice("This is a recording of rings. Explain it with: nixlring why %s", r.Path)
	case errors.Is(err, ringbuf.ErrNotRegular) && r.File.Mode[0] == 'd':
		r.advice("To list the rings in this directory, run: nixlring ls %s", r.Path)
	case errors.Is(err, ringbuf.ErrNotRing), errors.Is(err, ringbuf.ErrNotRegular): // consumers ignore it
	case errors.Is(err, ringbuf.ErrNotReady):
		r.advice("Try again later. If this doesn't change, the agent failed to start: check the agent's log, and restart the agent.")
	case errors.Is(err, ringbuf.ErrUnknownVersion), errors.Is(err, mpstore.ErrVersion):
		r.advice("The agent is newer than this program: update nixlring and the Collector.")
	case errors.Is(err, fs.ErrPermission) && r.named():
		r.advice("Stores have mode 0600. Run this as uid %d or as root, and the Collector as uid %[1]d or with CAP_DAC_READ_SEARCH.", r.File.Owner)
	case r.named():
		r.advice("A Collector can't read this store, and keeps what it read from it before. If its process is running, restart the process, " +
			"which creates another store. Then remove this file.")
	case errors.Is(err, fs.ErrPermission):
		r.advice("Run this as uid %d or as root.", r.File.Owner)
	default:
		r.advice("This ring can't be read. Its agent repairs the file when it restarts. If the agent no longer exists, remove the file.")
	}
}

// advise gives advice about a ring.
func (r *Report) advise(cfg Config, mode fs.FileMode) {
	c := r.Content
	if cfg.EUID != 0 && uint32(cfg.EUID) != r.File.Owner {
		r.advice("The ring belongs to uid %d. Consumers, such as a Collector, must run as this user or as root. "+
			"This process runs as uid %d and can only observe.", r.File.Owner, cfg.EUID)
	}
	switch {
	case mode.Perm()&0o222 == 0:
		r.advice("The file's mode gives nobody write permission, so no Collector consumes it. To consume it, run chmod u+w.")
	case mode.Perm()&0o022 != 0:
		r.advice("Other users can write to the file and so can forge or destroy events. To prevent this, run chmod go-w.")
	}
	leftover := r.alive == procs.No
	switch full := c.Pending >= c.Capacity-1; {
	case leftover && c.Pending > 0:
		r.advice("The agent has exited. The %d events in the ring can still be read. Remove the file when they are no longer needed.", c.Pending)
	case leftover:
		r.advice("The agent has exited, and all events were consumed. The file can be removed.")
	case full && r.alive == procs.Unknown && r.Consumer == nil && r.writers() == 0:
		r.advice("The ring is full. If its agent is running, it loses all new events. To find out, "+
			"run nixlring inspect as uid %d or as root, outside of any container.", r.File.Owner)
	case full && r.consumed():
		r.advice("The ring is full although it is consumed: the agent loses events. Set %s=%d (now %d) or a shorter %s for the agent.",
			process.EnvBufferSize, tally.EnoughSlots(c.Capacity, c.Dropped), c.Capacity, process.EnvRunInterval)
	case full && r.hidden:
		r.advice("The ring is full: its agent, if it is running, loses all new events. Check the log of the Collector, if there is one.")
	case full:
		r.advice("The ring is full and has no consumer: the agent loses all new events. "+
			"Start a Collector for the directory, or consume the events with: nixlring read --consume --follow %s", r.Path)
	default:
		r.adviseSize()
	}
	r.adviseReaders()
}

// adviseSize gives advice about the size of the ring.
func (r *Report) adviseSize() {
	c := r.Content
	switch {
	case c.Dropped > 0:
		r.advice("The agent reports %d dropped events, which didn't fit its own queue. Set %s=%d (now %d) or a shorter %s for the agent.",
			c.Dropped, process.EnvBufferSize, tally.EnoughSlots(c.Capacity, c.Dropped), c.Capacity, process.EnvRunInterval)
	case r.Burst == nil:
	case r.Burst.PeakFill >= c.Capacity-1:
		r.advice("The ring was full while it was watched: the agent loses events. Set %s=%d (now %d) or a shorter %s for the agent.",
			process.EnvBufferSize, tally.EnoughSlots(c.Capacity, 0), c.Capacity, process.EnvRunInterval)
	case r.Burst.Most > uint64(c.Capacity/2):
		r.advice("Up to %d events arrived within a run interval, more than half of the ring's capacity. Larger bursts can overflow it. "+
			"Set %s=%d (now %d) for the agent.", r.Burst.Most, process.EnvBufferSize, tally.SlotsFor(r.Burst.Most), c.Capacity)
	}
}

// consumed reports whether the ring seems to have a consumer: a process other than the
// agent that has it mapped for writing.
func (r *Report) consumed() bool { return r.Consumer != nil || r.writers() > 1 }

func (r *Report) writers() (n int) {
	for _, p := range r.Mapped {
		if p.Writable {
			n++
		}
	}
	return n
}

// adviseReaders gives advice if too many processes have the ring mapped for writing.
func (r *Report) adviseReaders() {
	switch n := r.writers(); {
	case r.hidden:
	case r.Consumer == nil && n > 1:
		r.advice("%d processes have the ring mapped for writing, and none of them holds the consumer lock: "+
			"besides the agent, these are other readers (NIXL's telemetry_reader, pmdanixl), or agents with the same name.", n)
	case r.Consumer != nil && n > 2:
		r.advice("%d processes have the ring mapped for writing, more than the agent and the consumer: another reader takes events "+
			"(NIXL's telemetry_reader, pmdanixl), or several agents have the same name.", n)
	}
}
