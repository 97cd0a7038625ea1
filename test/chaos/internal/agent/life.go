// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/oracle"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// Life is an agent's process.
type Life struct {
	*proc.Process
	Config

	ring *os.File // its ring, even if the file was removed or replaced
	seen *Account // the account at the time of Freeze
}

// Account contains the events of a life.
type Account struct {
	Written Counts // events that reached the ring
	Unread  Counts // events in the ring that aren't committed
}

// Launch starts an agent without waiting.
func Launch(tb testing.TB, cfg Config) *Life {
	tb.Helper()
	text, err := json.Marshal(cfg)
	must.OK(tb, err)
	cmd := exec.CommandContext(tb.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), variable+"="+string(text))
	return &Life{Process: proc.Start(tb, cmd), Config: cfg}
}

// AwaitStart waits until the agent has created its ring.
func (l *Life) AwaitStart(tb testing.TB) {
	tb.Helper()
	l.WaitLine(tb, l.Stdout, started, func(line string) bool { return line == started })
	l.hold(tb)
}

// hold opens the ring's file, so that it can be read after it was removed or replaced.
func (l *Life) hold(tb testing.TB) {
	tb.Helper()
	f, err := os.Open(l.Path)
	must.OK(tb, err)
	l.ring = f
	tb.Cleanup(func() { _ = f.Close() })
}

// Freeze suspends the agent and takes its account. The test may then damage the ring; events that
// the agent writes later aren't counted.
func (l *Life) Freeze(tb testing.TB) {
	tb.Helper()
	l.Signal(tb, syscall.SIGSTOP)
	must.Eventually(tb, func() string {
		if proc.Stopped(l.PID()) {
			return ""
		}
		return "the agent still runs"
	})
	account := l.account(tb)
	l.seen = &account
}

// Account returns the account of a life that has ended. Unread events may still be read until the
// next life begins, so call it immediately before.
func (l *Life) Account(tb testing.TB) Account {
	tb.Helper()
	if l.seen != nil {
		return *l.seen
	}
	return l.account(tb)
}

func (l *Life) account(tb testing.TB) Account {
	tb.Helper()
	e, err := readJournal(l.Journal)
	must.OK(tb, err)
	if e.Number == 0 {
		return Account{} // killed before it initialized its ring
	}
	if l.ring == nil {
		l.hold(tb)
	}
	s := l.snapshot(tb)
	h := ringtest.ReadHeader(tb, s)
	account := Account{Unread: decode(tb, s, h.ReadPos, h.WritePos)}
	account.Written = decode(tb, s, e.Counts.Sum()&h.Mask, h.WritePos)
	account.Written.Add(e.Counts)
	return account
}

// snapshot copies the ring. The agent has ended, so only the read position can change.
func (l *Life) snapshot(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "ring")
	if _, err := l.ring.Seek(0, io.SeekStart); err != nil {
		tb.Fatal(err)
	}
	text, err := io.ReadAll(l.ring)
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	must.OK(tb, err)
	return path
}

// decode adds up the events between two positions of a copy.
func decode(tb testing.TB, path string, from, to uint64) Counts {
	tb.Helper()
	ringtest.Edit(tb, path, func(h *ringtest.Header) { h.ReadPos, h.WritePos = from, to })
	r, err := ringbuf.OpenReader(path, ringbuf.Observe)
	must.OK(tb, err)
	defer r.Close()
	events := oracle.New()
	_, err = r.Read(0, func(b ringbuf.Batch) {
		for i := range b.Len() {
			events.Add(r.Layout(), b.Event(i))
		}
	})
	must.OK(tb, err)
	return countsOf(events)
}

// Drained reports whether all events of the ring are committed.
func (l *Life) Drained(tb testing.TB) bool {
	tb.Helper()
	return ringtest.ReadHeader(tb, l.Path).Drained()
}
