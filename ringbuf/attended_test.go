// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// For a consumer, any other process that has the ring open counts, even one that
// only reads. For an observer, only processes that can write count. Neither counts
// itself.
func TestAttendedReportsOtherProcesses(t *testing.T) {
	w := newRing(t, V4, 16)
	path := w.Path()
	ask := func(r *Reader, want bool, when string) {
		t.Helper()
		got, err := r.Attended()
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EACCES) {
			t.Skipf("no leases here: %v", err)
		}
		if err != nil || got != want {
			t.Errorf("%s: attended %v, want %v (%v)", when, got, want, err)
		}
	}
	c := open(t, path, Consume)
	ask(c, true, "the agent has it open")
	must.OK(t, w.Close())
	ask(c, false, "the agent has closed it")
	other := openElsewhere(t, path, Observe, nil)
	ask(c, true, "another process observes it")
	other.quit()
	ask(c, false, "the other process has exited")

	must.OK(t, c.Close())
	o := open(t, path, Observe)
	ask(o, false, "no other process has it open")
	consumer := openElsewhere(t, path, Consume, nil)
	ask(o, true, "another process consumes it")
	consumer.quit()
	ask(o, false, "the consumer has exited")
	// Attended has released its lease, so an agent doesn't block on it.
	create(t, path, V4, 16)
	ask(o, true, "an agent has it open again")
}

func TestAttendedIsUnsupportedInMemory(t *testing.T) {
	p, _ := plainRing(t, V4, 16)
	r := p.reader(t, Consume)
	if _, err := r.Attended(); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}
