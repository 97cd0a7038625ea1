// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringfile

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/recording"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/mpstore"
	"github.com/nixl-otel/nixl-otel/internal/process"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func (r *Report) advice(format string, args ...any) {
	r.Advice = append(r.Advice, fmt.Sprintf(format, args...))
}

func (r *Report) advise(euid int) {
	switch {
	case r.Ring:
		r.adviseOwner(euid)
		r.adviseFill()
		r.adviseReaders()
	case r.Store == nil:
		r.adviseUnreadable()
	case r.InUse == diagnose.No:
		r.advice("The process has exited. The file can be removed when a Collector has exported its last values.")
		r.advice("If the process is still running, it couldn't lock its store: check the agent's log, and restart the agent.")
	}
}

// notRing reports whether the file is neither a ring nor a store, whatever its content.
func (r *Report) notRing() bool {
	return errors.Is(r.err, ringbuf.ErrNotRegular) || errors.Is(r.err, ringbuf.ErrNotRing) && !errors.Is(r.err, ringbuf.ErrNotReady)
}

// adviseUnreadable gives advice about a file that can't be read as a ring or store.
func (r *Report) adviseUnreadable() {
	denied := errors.Is(r.err, fs.ErrPermission)
	switch {
	case recording.Is(string(r.Path)):
		r.advice("This is a recording. Explain it with: nixlring why %s", r.Path)
	case r.File.mode.IsDir():
		r.advice("To list the rings in this directory, run: nixlring ls %s", r.Path)
	case r.notRing(): // consumers ignore it
	case errors.Is(r.err, ringbuf.ErrNotReady):
		r.advice("Try again later. If this doesn't change, the agent failed to start: check the agent's log, and restart the agent.")
	case errors.Is(r.err, ringbuf.ErrUnknownVersion), errors.Is(r.err, mpstore.ErrVersion):
		r.advice("The agent is newer than this program: update nixlring and the Collector.")
	case denied && r.named():
		r.advice("Stores have mode 0600. Run this as uid %d or as root, and the Collector as uid %[1]d or with CAP_DAC_READ_SEARCH.", r.Owner)
	case denied:
		r.advice("Run this as uid %d or as root.", r.Owner)
	case r.named():
		r.advice("A Collector can't read this store. If its process is running, restart the process, which creates another store. Then remove this file.")
	default:
		r.advice("This ring can't be read. Its agent repairs the file when it restarts. If the agent no longer exists, remove the file.")
	}
}

// adviseOwner gives advice about the owner and the permissions of a ring.
func (r *Report) adviseOwner(euid int) {
	if euid != 0 && uint32(euid) != r.Owner {
		r.advice("The ring belongs to uid %d. Consumers, such as a Collector, must run as this user or as root. "+
			"This process runs as uid %d and can only observe.", r.Owner, euid)
	}
	switch {
	case r.File.mode.Perm()&0o222 == 0:
		r.advice("The file's mode gives nobody write permission, so no Collector consumes it. To consume it, run chmod u+w.")
	case r.File.mode.Perm()&0o022 != 0:
		r.advice("Other users can write to the file and so can forge or destroy events. To prevent this, run chmod go-w.")
	}
}

// adviseFill gives advice about the ring of an exited agent, a full ring, or the size of a ring.
func (r *Report) adviseFill() {
	exited, consumed := r.Users.Running == diagnose.No, r.Users.Consumer != nil || len(r.Users.Writers()) > 1
	switch {
	case exited && *r.Pending > 0:
		r.advice("The agent has exited. Events that are still in the ring (%d) can be read. Remove the file when they are no longer needed.", *r.Pending)
	case exited:
		r.advice("The agent has exited, and all events were consumed. The file can be removed.")
	case r.full() && r.Users.Running == diagnose.Unknown && !consumed:
		r.advice("The ring is full. If its agent is running, it loses all new events. To find out, "+
			"run nixlring inspect as uid %d or as root, outside of any container.", r.Owner)
	case r.full() && consumed:
		r.advice("The ring is full although it is consumed: the agent loses events. %s", r.larger(tally.EnoughSlots(r.Capacity, r.Drops)))
	case r.full():
		r.advice("The ring is full and has no consumer: the agent loses all new events. "+
			"Start a Collector for the directory, or consume the events with: nixlring read --consume --follow %s", r.Path)
	case r.Drops > 0:
		r.advice("The agent dropped events that didn't fit its own queue (%d). %s", r.Drops, r.larger(tally.EnoughSlots(r.Capacity, r.Drops)))
	}
}

// larger says how to get a larger ring.
func (r *Report) larger(slots int) string {
	return fmt.Sprintf("Set %s=%d (now %d) or a shorter %s for the agent.", process.EnvBufferSize, slots, r.Capacity, process.EnvRunInterval)
}

// adviseReaders gives advice if too many processes have the ring mapped for writing.
func (r *Report) adviseReaders() {
	if n := len(r.Users.Writers()); n > 1 {
		r.advice("Besides a consumer that holds the consumer lock, %d processes have the ring mapped for writing: the agent, and other readers "+
			"(NIXL's telemetry_reader, pmdanixl) that take events, or several agents with the same name.", n)
	}
}
