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
	"strings"
	"syscall"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/test/chaos/internal/ledger"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// Life is an agent's process, seen from the test.
type Life struct {
	*proc.Process
	Config

	ring *os.File // what it writes into, also when the name is gone or another's
	seen *Account // what was found out before the ring was spoiled
}

// Account is what became of the events of a life.
type Account struct {
	Written ledger.Ledger // reached the ring
	Unread  ledger.Ledger // stand in the ring; nobody has committed them
}

// Launch starts an agent, and doesn't wait for anything.
func Launch(tb testing.TB, cfg Config) *Life {
	tb.Helper()
	text, err := json.Marshal(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.CommandContext(tb.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), variable+"="+string(text))
	return &Life{Process: proc.Start(tb, cmd), Config: cfg}
}

// AwaitStart waits until the agent's ring is there.
func (l *Life) AwaitStart(tb testing.TB) {
	tb.Helper()
	l.WaitLine(tb, l.Stdout, started, func(line string) bool { return line == started })
	l.hold(tb)
}

// hold keeps the ring's file, whatever becomes of its name.
func (l *Life) hold(tb testing.TB) {
	tb.Helper()
	f, err := os.Open(l.Path)
	if err != nil {
		tb.Fatal(err)
	}
	l.ring = f
	tb.Cleanup(func() { _ = f.Close() })
}

// Freeze stops the agent in its tracks and looks at what it has done so far.
// The ring may be spoiled then: what the agent still writes after it was let
// go on is nobody's.
func (l *Life) Freeze(tb testing.TB) {
	tb.Helper()
	l.Signal(tb, syscall.SIGSTOP)
	proc.Eventually(tb, func() string {
		if proc.Stopped(l.PID()) {
			return ""
		}
		return "the agent still runs"
	})
	account := l.account(tb)
	l.seen = &account
}

// Account is what became of the events of a life that has ended. Events that
// stand in the ring now may still be read, or be lost when the next life
// begins: it is to be asked for just before.
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
	if err != nil {
		tb.Fatal(err)
	}
	if e.Number == 0 {
		return Account{} // killed before it had a ring of its own
	}
	if l.ring == nil {
		l.hold(tb)
	}
	s := l.snapshot(tb)
	h := ringtest.ReadHeader(tb, s)
	account := Account{Unread: decode(tb, s, h.ReadPos, h.WritePos)}
	account.Written = decode(tb, s, e.Events&h.Mask, h.WritePos)
	account.Written.AddNamed(e.ByName)
	return account
}

// snapshot copies the ring. The agent has ended, so that nothing but the read
// position moves.
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
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// decode adds up the events between two positions of a copy.
func decode(tb testing.TB, path string, from, to uint64) ledger.Ledger {
	tb.Helper()
	ringtest.Edit(tb, path, func(h *ringtest.Header) { h.ReadPos, h.WritePos = from, to })
	r, err := ringbuf.OpenReader(path, ringbuf.Observe)
	if err != nil {
		tb.Fatal(err)
	}
	defer r.Close()
	l := ledger.Ledger{}
	_, err = r.Read(0, func(b ringbuf.Batch) {
		for i := range b.Len() {
			e := b.Event(i)
			l.AddEvent(&e)
		}
	})
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// Drained says whether all events of a ring were read and committed.
func (l *Life) Drained(tb testing.TB) bool {
	tb.Helper()
	h := ringtest.ReadHeader(tb, l.Path)
	return h.ReadPos == h.WritePos
}

// String is the life in a few words.
func (l *Life) String() string {
	return strings.Join([]string{filepath.Base(l.Path), l.Layout.String()}, " ")
}
