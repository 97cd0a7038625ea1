// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// A consumer sees any other process that has the ring open, also one that only
// reads; an observer sees those that can write. Neither sees itself.
func TestAttended(t *testing.T) {
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
	ok(t, w.Close())
	ask(c, false, "the agent has closed it")
	other := openElsewhere(t, path, Observe, nil)
	ask(c, true, "another process observes it")
	other.quit()
	ask(c, false, "the other process has exited")

	closeNow(t, c)
	o := open(t, path, Observe)
	ask(o, false, "nobody else has it")
	consumer := openElsewhere(t, path, Consume, nil)
	ask(o, true, "another process consumes it")
	consumer.quit()
	ask(o, false, "the consumer has exited")
	// A probe leaves no lease behind that an agent would have to wait for.
	create(t, path, V4, 16)
	ask(o, true, "an agent is back")
}

// A ring in memory has no file to ask about.
func TestMemoryHasNoFile(t *testing.T) {
	p, _ := plainRing(t, V4, 16)
	r := p.reader(t, Consume)
	if _, err := r.Attended(); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}
