// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/recording"
	"github.com/nixl-otel/nixl-otel/internal/nixlenv"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func (r *Report) advice(format string, args ...any) {
	r.Advice = append(r.Advice, fmt.Sprintf(format, args...))
}

// adviseNoRing says what to do about a file that can't be read as a ring.
func (r *Report) adviseNoRing(err error) {
	var version *ringbuf.UnknownVersionError
	switch {
	case recording.Is(r.Path):
		r.advice("It is a recording of rings, which nixlring record wrote. Play it back as rings with: nixlring replay %s DIR", r.Path)
	case errors.Is(err, ringbuf.ErrNotRegular) && r.File.Mode[0] == 'd':
		r.advice("The rings in it are listed by: nixlring ls %s", r.Path)
	case errors.Is(err, ringbuf.ErrNotRing), errors.Is(err, ringbuf.ErrNotRegular):
		r.advice("Leave it alone: it is none of an agent's, and no consumer of this project touches it. nixlring ls lists the rings of a directory.")
	case errors.Is(err, ringbuf.ErrNotReady):
		r.advice("Look again in a while. If it stays like this its agent has failed to start, and says why in its own log; start it anew.")
	case errors.As(err, &version):
		r.advice("Its agent is newer than this program: take a newer release, of the Collector too.")
	case errors.Is(err, fs.ErrPermission):
		r.advice("Run this as uid %d or as root.", r.File.Owner)
	default:
		r.advice("Nobody can read it like this. Its agent makes it whole when it restarts; if there is none any more, delete the file.")
	}
}

// advise says what an operator should know or do about a ring.
func (r *Report) advise(cfg Config, mode fs.FileMode) {
	c := r.Content
	if cfg.EUID != 0 && uint32(cfg.EUID) != r.File.Owner {
		r.advice("The ring belongs to uid %d: whoever consumes it, a Collector for one, must run as that user or as root. "+
			"This process is uid %d and can only look.", r.File.Owner, cfg.EUID)
	}
	if mode.Perm()&0o022 != 0 {
		r.advice("Other users may write to the file, and so may forge or spoil its events; chmod go-w takes that away.")
	}
	leftover := r.alive == procs.No
	switch full := c.Pending >= c.Capacity-1; {
	case leftover && c.Pending > 0:
		r.advice("Its agent has exited. The %d events in the ring can still be read; delete the file once nobody needs them.", c.Pending)
	case leftover:
		r.advice("Its agent has exited, and all events were read. The file may be deleted.")
	case full && r.alive == procs.Unknown && r.Consumer == nil && r.writers() == 0:
		r.advice("The ring is full. Whether its agent is alive, and loses each new event, can't be told from here: "+
			"run nixlring inspect as uid %d or as root, outside of any container.", r.File.Owner)
	case full && r.consumed():
		r.advice("The ring is full although it is consumed: the agent loses events. Give it %s=%d (now %d) or a shorter %s.",
			nixlenv.BufferSize, nixlenv.EnoughSlots(c.Capacity, c.Dropped), c.Capacity, nixlenv.RunInterval)
	case full:
		r.advice("The ring is full and nobody takes events from it: the agent loses each new one. "+
			"Start a Collector for the directory, or take the events with: nixlring read --consume --follow %s", r.Path)
	default:
		r.adviseSize()
	}
	r.adviseReaders()
}

// adviseSize says whether the ring is large enough for what it was given.
func (r *Report) adviseSize() {
	c := r.Content
	switch {
	case c.Dropped > 0:
		r.advice("The agent reports that %d events didn't fit its own queue. Give it %s=%d (now %d) or a shorter %s.",
			c.Dropped, nixlenv.BufferSize, nixlenv.EnoughSlots(c.Capacity, c.Dropped), c.Capacity, nixlenv.RunInterval)
	case r.Burst == nil:
	case r.Burst.PeakFill >= c.Capacity-1:
		r.advice("The ring was full while it was watched: the agent loses events. Give it %s=%d (now %d) or a shorter %s.",
			nixlenv.BufferSize, nixlenv.EnoughSlots(c.Capacity, 0), c.Capacity, nixlenv.RunInterval)
	case r.Burst.Most > uint64(c.Capacity/2):
		r.advice("Up to %d events came within a run interval, more than half of what the ring holds: a busier time will overflow it. "+
			"%s=%d (now %d) leaves room.", r.Burst.Most, nixlenv.BufferSize, nixlenv.SlotsFor(r.Burst.Most), c.Capacity)
	}
}

// consumed says whether somebody seems to take events from the ring: the agent
// is one of those that have it mapped for writing.
func (r *Report) consumed() bool { return r.Consumer != nil || r.writers() > 1 }

func (r *Report) writers() (n int) {
	for _, p := range r.Mapped {
		if p.Writable {
			n++
		}
	}
	return n
}

// adviseReaders says whether more processes write to the ring than should.
func (r *Report) adviseReaders() {
	switch n := r.writers(); {
	case r.Consumer == nil && n > 1:
		r.advice("%d processes have the ring mapped for writing, and none of them is a consumer of this project: "+
			"the others than the agent are readers like NIXL's telemetry_reader or pmdanixl, or agents of the same name.", n)
	case r.Consumer != nil && n > 2:
		r.advice("%d processes have the ring mapped for writing, besides agent and consumer too: another reader takes events away "+
			"(NIXL's telemetry_reader, pmdanixl), or two agents have one name.", n)
	}
}
