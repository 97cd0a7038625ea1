// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/scripttest"
)

// script runs the commands of a test on a ring in plain memory. Events have increasing values. The readers are c, a
// consumer, and o, an observer.
type script struct {
	t       *testing.T
	plain   *plain
	writer  *Writer
	readers map[string]*Reader
	seen    []string
}

func runScript(t *testing.T, capacity int, text string) {
	t.Helper()
	s := &script{t: t, readers: make(map[string]*Reader)}
	s.plain, s.writer = plainRing(t, V4, capacity)
	scripttest.Run(t, text, s.run, func() string {
		defer func() { s.seen = nil }()
		return strings.Join(s.seen, ", ")
	})
}

func (s *script) run(command []string) {
	s.t.Helper()
	number := func(i int) uint64 {
		n, err := strconv.ParseUint(command[i], 10, 64)
		must.OK(s.t, err)
		return n
	}
	name := append(command, "")[1]
	r := s.readers[name]
	switch command[0] {
	case "push": // events with the values from the first to the second
		fill(s.t, s.writer, number(1), number(2)+1)
	case "open":
		s.readers[name] = s.plain.reader(s.t, map[string]Mode{"c": Consume, "o": Observe}[name])
	case "read":
		got, err := values(r)
		s.see(name, "read "+ranges(got), err)
	case "drain": // read and commit
		got, err := values(r)
		s.see(name, "read "+ranges(got), errors.Join(err, r.Commit()))
	case "commit":
		s.see(name, "committed", r.CommitTo(number(2)))
	case "skip":
		pending, err := r.Skip(number(2))
		s.see(name, fmt.Sprint("pending ", pending), err)
	case "sum": // the fingerprint is that of a new reader
		sum, err := r.Fingerprint(number(2))
		want, _ := s.plain.reader(s.t, Consume).Fingerprint(number(2))
		s.see(name, fmt.Sprint("same sum ", sum == want), err)
	case "position": // of the last read and the last commit, and the uncommitted events
		s.see(name, fmt.Sprint(r.Position(), " ", r.Committed(), " ", r.Uncommitted()), nil)
	case "header": // read position
		s.see("header", fmt.Sprint(atomic.LoadUint64(s.writer.read)), nil)
	case "idle":
		s.see(name, fmt.Sprint("idle ", r.Idle()), nil)
	case "release":
		r.Release()
	case "zero": // all slots, as truncating and extending the file does
		clear(s.writer.slots)
	case "close":
		must.OK(s.t, r.Close())
	case "version": // in the header
		atomic.StoreInt32(s.writer.version, int32(number(1)))
	case "capacity":
		atomic.StoreUint64(s.writer.capacity, number(1))
	case "foreign": // another process stores the read position
		atomic.StoreUint64(s.writer.read, number(1))
	case "stop": // the clock, so that an ambiguous header isn't believed
		s.plain.stands = true
	case "wait": // for a part of the time after which it is
		s.plain.now = s.plain.now.Add(settleTime / time.Duration(number(1)))
	case "restart": // the agent
		w, err := NewWriter(s.plain.mem, s.plain, V4, s.writer.Capacity())
		must.OK(s.t, err)
		s.writer = w
	case "begin": // a restart, with the first store
		atomic.StoreUint64(s.writer.write, 0)
	default:
		s.t.Fatalf("unknown command %q", command)
	}
}

func (s *script) see(name, what string, err error) {
	s.t.Helper()
	if err != nil && what != "read nothing" && strings.HasPrefix(what, "read ") {
		s.t.Errorf("%s %s beside error %v", name, what, err)
	}
	_, moved, foreign := strings.Cut(fmt.Sprint(err), "(read position ")
	switch {
	case errors.Is(err, ErrForeignRead) && foreign:
		what = strings.TrimSuffix(moved, ")")
	case errors.Is(err, ErrRestarted):
		what = "restarted"
	case errors.Is(err, ErrLapped):
		what = "lapped"
	case errors.Is(err, ErrInvalid):
		what = "invalid"
	default:
		must.OK(s.t, err)
	}
	s.seen = append(s.seen, name+" "+what)
}

// ranges describes values, such as 1-10 12.
func ranges(list []uint64) string {
	if len(list) == 0 {
		return "nothing"
	}
	var parts []string
	for i := 0; i < len(list); {
		from := i
		for i++; i < len(list) && list[i] == list[i-1]+1; {
			i++
		}
		parts = append(parts, fmt.Sprint(list[from], "-", list[i-1]))
	}
	return strings.Join(parts, " ")
}

// Another process, such as NIXL's own reader, moves the read position without a lock.
func TestForeignReads(t *testing.T) {
	for name, text := range map[string]string{
		// When two readers consume at the same time, one can store an old position. Committed events aren't read again.
		"backward by one": `
			open c; push 1 10; drain c; push 11 13; foreign 9 => c read 1-10
			read c; drain c; header => c moved from 10 to 9, c read 11-13, header 13`,
		"backward by five": `
			open c; push 1 10; drain c; push 11 13; foreign 5 => c read 1-10
			read c; drain c; header => c moved from 10 to 5, c read 11-13, header 13`,
		// The position in the new run is within the reader's last commit, but the slots between the two positions belong to
		// the old run.
		"after a restart": `
			open c; push 1 14; drain c; push 15 19; drain c => c read 1-14, c read 15-19
			restart; push 101 102; foreign 1; read c; push 103 109; drain c => c moved from 3 to 1, c read 102-109`,
		// The ring looks as if the agent had restarted. A new reader loses only the other reader's events.
		"to position 0": `
			open c; push 1 10; drain c; push 11 19; foreign 0; read c => c read 1-10, c restarted
			open c; read c => c read 17-19`,
	} {
		t.Run(name, func(t *testing.T) { runScript(t, 16, text) })
	}
}

// A restarting agent makes its next store at once, unless it is paused. So the reader waits until the header has
// stayed the same for a moment, or has changed.
func TestAmbiguousHeaders(t *testing.T) {
	for name, text := range map[string]string{
		"the last event of a lap": `
			open c; push 1 63; drain c; stop; push 64 64; drain c; idle c => c read 1-63, c read nothing, c idle false
			wait 2; drain c; wait 4; drain c; idle c => c read nothing, c read nothing, c idle false
			wait 4; drain c => c read 64-64`,
		"a full ring": `
			open c; push 1 1; drain c; stop; push 2 64; drain c; idle c => c read 1-1, c read nothing, c idle false
			wait 2; drain c; wait 4; drain c => c read nothing, c read nothing
			wait 4; drain c => c read 2-64`,
		"a header that changes": `
			open c; push 1 50; drain c; stop; push 51 64; drain c => c read 1-50, c read nothing
			wait 2; drain c; push 65 65; drain c => c read nothing, c read 51-65`,
		"a new reader": `
			open c; push 1 50; drain c; push 51 64; open c; stop; drain c => c read 1-50, c read nothing
			wait 2; drain c; wait 2; drain c => c read nothing, c read 51-64`,
		// A wait that began before the header changed doesn't count.
		"a header that is ambiguous again a lap later": `
			open c; push 1 50; drain c; stop; push 51 64; drain c => c read 1-50, c read nothing
			push 65 65; drain c; push 66 110; drain c; wait 1; push 111 128; drain c => c read 51-65, c read 66-110, c read nothing`,
		"a header that is ambiguous again after a foreign read": `
			open c; push 1 50; drain c; stop; push 51 64; drain c => c read 1-50, c read nothing
			push 65 66; foreign 2; read c; wait 1; begin; read c => c moved from 50 to 2, c read nothing`,
	} {
		t.Run(name, func(t *testing.T) { runScript(t, 64, text) })
	}
}

// An observer knows from the slots what the agent has done. One that has just opened the ring can't know.
func TestObserversOfAmbiguousHeaders(t *testing.T) {
	for name, text := range map[string]string{
		"a wrapped ring is read at once": `
			open c; open o; stop; push 1 40; drain c; drain o; push 41 64; read o => c read 1-40, o read 1-40, o read 41-64`,
		"a wrapped ring, opened again": `
			open c; open o; stop; push 1 40; drain c; drain o; push 41 64; open o; read o => c read 1-40, o read 1-40, o read 41-64`,
		// The slots that the observer has read last were overwritten. If its position is behind a read position that isn't 0,
		// the ring's consumer may have let the agent continue for a whole lap.
		"a lap": `
			open c; open o; push 1 20; drain c; drain o; push 21 60; drain c; push 61 90 => c read 1-20, o read 1-20, c read 21-60
			read o; push 91 100; read o => o lapped, o read 91-100`,
		"a restart": `
			open c; open o; push 1 20; drain c; drain o; restart; push 61 90; read o => c read 1-20, o read 1-20, o restarted`,
		"a restart that truncates the file, which is shorter than the last lap": `
			open c; open o; push 1 40; drain c; drain o; push 41 90; drain c; drain o => c read 1-40, o read 1-40, c read 41-90, o read 41-90
			zero; restart; push 91 95; read o => o restarted`,
	} {
		t.Run(name, func(t *testing.T) { runScript(t, 64, text) })
	}
}

func TestPositions(t *testing.T) {
	for name, text := range map[string]string{
		"a commit leaves later events uncommitted": `
			push 1 6; open c; read c; commit c 4; position c; header => c read 1-6, c committed, c 6 4 2, header 4
			commit c 7; commit c 8; commit c 6; position c => c invalid, c invalid, c committed, c 6 6 0`,
		"skipped events aren't read": `
			push 1 5; open c; skip c 6; skip c 8; skip c 3; read c => c invalid, c invalid, c pending 2, c read 4-5
			push 6 7; skip c 7; sum c 7; sum c 8 => c pending 0, c same sum true, c invalid`,
		// A reader keeps a checksum while it hasn't committed. A commit and a foreign read end that.
		"a fingerprint is that of a new reader": `
			open c; push 1 3; read c; sum c 3; sum c 2; sum c 5 => c read 1-3, c same sum true, c same sum true, c same sum true
			push 4 5; drain c; sum c 0; sum c 3; sum c 5 => c read 4-5, c same sum true, c same sum true, c same sum true
			push 6 9; read c; sum c 1 => c read 6-9, c same sum true
			push 10 11; foreign 3; read c; sum c 3; sum c 2; sum c 0 => c moved from 5 to 3, c same sum true, c same sum true, c same sum true`,
		"the slot before position 0 is released after a commit": `
			open c; push 1 3; drain c; push 4 8; read c; release c; header => c read 1-3, c read 4-8, header 3
			commit c 0; position c; header; read c => c committed, c 0 7 0, header 7, c read nothing
			release c; header => header 0`,
		"the slot before position 0 isn't released before the events after it": `
			open c; push 1 3; drain c; push 4 8; drain c; push 9 10; read c => c read 1-3, c read 4-8, c read 9-10
			release c; header; commit c 2; header => header 7, c committed, header 2`,
		// If the file hasn't changed, a slot of zeros is an event.
		"an event of zeros": `
			open c; push 0 0; drain c => c read 0-0`,
	} {
		t.Run(name, func(t *testing.T) { runScript(t, 8, text) })
	}
}

// Idle means that a read finds neither events nor an error.
func TestIdle(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":           "idle c => c idle true",
		"pending":           "push 1 1; idle c => c idle false",
		"uncommitted":       "push 1 1; read c; idle c => c read 1-1, c idle true",
		"committed":         "push 1 1; drain c; idle c => c read 1-1, c idle true",
		"foreign read":      "foreign 1; idle c => c idle false",
		"foreign, read":     "push 1 1; read c; foreign 1; idle c => c read 1-1, c idle false",
		"restarting":        "version 0; idle c => c idle false",
		"another layout":    "version 3; idle c => c idle false",
		"another capacity":  "capacity 32; idle c => c idle false",
		"closed":            "close c; idle c => c idle false",
		"observed":          "push 1 2; idle o; drain o; idle o => o idle false, o read 1-2, o idle true",
		"observed, drained": "push 1 2; drain o; drain c; idle o => o read 1-2, c read 1-2, o idle true",
	} {
		t.Run(name, func(t *testing.T) { runScript(t, 16, "open c; open o; "+text) })
	}
}
