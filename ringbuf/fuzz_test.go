// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
)

// maxFuzzFile keeps the corpus small enough for plain go test.
const maxFuzzFile = 4096

// seedRings calls add with every small real ring, complete and truncated.
func seedRings(f *testing.F, add func(ring []byte)) {
	f.Helper()
	for _, c := range ringtest.Cases(f) {
		ring := fileBytes(f, c.File)
		if len(ring) <= maxFuzzFile {
			add(ring)
		}
		add(ring[:HeaderSize])
		add(ring[:min(len(ring), 57)])
	}
}

// FuzzHeader checks that identify doesn't panic on any header and file size, and
// that an accepted header is consistent.
func FuzzHeader(f *testing.F) {
	seedRings(f, func(ring []byte) { f.Add(ring[:min(len(ring), HeaderSize)], int64(len(ring))) })
	f.Add(ringtest.NewHeader(4, 1<<60).Bytes(), int64(40))
	f.Add(ringtest.NewHeader(2, 1<<40).Bytes(), int64(1)<<62)
	f.Add(ringtest.NewHeader(-1, 64).Bytes(), int64(40+64*16))
	f.Fuzz(func(t *testing.T, b []byte, size int64) {
		if len(b) < 40 || size < 40 {
			return // identifyFile refuses such files
		}
		h, l, err := identify(b[:HeaderSize], size)
		if err != nil {
			known(t, err)
			return
		}
		switch {
		case !l.known() || l.Version() != h.Version,
			h.Capacity < 2 || h.Capacity > MaxCapacity || bits.OnesCount64(h.Capacity) != 1,
			h.Mask != h.Capacity-1 || h.WritePos > h.Mask || h.ReadPos > h.Mask,
			size != l.FileSize(h.Capacity):
			t.Errorf("accepted %+v in %d bytes as %v", h, size, l)
		}
	})
}

// FuzzRing checks that reading any bytes as a ring doesn't panic, returns only slots
// of the ring, and changes only readPos.
func FuzzRing(f *testing.F) {
	seedRings(f, func(ring []byte) { f.Add(ring) })
	f.Fuzz(func(t *testing.T, ring []byte) {
		if len(ring) > 1<<16 || len(ring) == 0 {
			return
		}
		p := newPlain(ring)
		for _, mode := range []Mode{Observe, Consume} {
			fuzzRead(t, p, ring, mode)
		}
	})
}

func fuzzRead(t *testing.T, p *plain, ring []byte, mode Mode) {
	t.Helper()
	r, err := NewReader(p.mem, p, mode)
	if err != nil {
		known(t, err)
		if !bytes.Equal(p.mem, ring) {
			t.Error("a refused ring has changed")
		}
		return
	}
	h := decodeHeader(ring)
	slots := ring[HeaderSize:]
	size := r.Layout().EventSize()
	pending := int((h.WritePos - h.ReadPos) & h.Mask)
	at, total := int(h.ReadPos), 0
	for limit := range 3 { // all but the first two passes are without a limit
		_, err := r.Read((limit+1)%3, func(b Batch) {
			if b.Len() == 0 {
				t.Error("an empty batch")
			}
			if got, want := b.slots, slots[at*size:(at+b.Len())*size]; !bytes.Equal(got, want) {
				t.Errorf("%d slots from %d are % x, the ring has % x", b.Len(), at, got, want)
			}
			fuzzBatch(t, b)
			at = (at + b.Len()) % r.Capacity()
			total += b.Len()
		})
		if err != nil {
			t.Errorf("read: %v", err)
		}
	}
	if total != pending || !r.Idle() {
		t.Errorf("%d events, %d are pending; idle: %v", total, pending, r.Idle())
	}
	if err := r.Commit(); err != nil {
		t.Errorf("commit: %v", err)
	}
	want := ring
	if mode == Consume {
		want = bytes.Clone(ring)
		binary.LittleEndian.PutUint64(want[offReadPos:], afterCommit(h))
	}
	if !bytes.Equal(p.mem, want) {
		t.Errorf("%v: the ring afterwards is % x, want % x", mode, p.mem, want)
	}
}

// FuzzChange changes any bytes of a ring between any two calls. No call panics, the
// returned events are in the ring, and only readPos is stored.
func FuzzChange(f *testing.F) {
	seedRings(f, func(ring []byte) {
		f.Add(ring, []byte{0, 0, 9, 0, 0, 5, 8, 1, 3}, false)
		f.Add(ring, []byte{8, 0, 1, 1, 0, 0, 2, 16, 0}, true)
	})
	f.Fuzz(func(t *testing.T, ring, changes []byte, observe bool) {
		mode := Consume
		if observe {
			mode = Observe
		}
		if len(ring) > maxFuzzFile || len(ring) == 0 {
			return
		}
		p := newPlain(ring)
		r, err := NewReader(p.mem, p, mode)
		if err != nil {
			return
		}
		word := offReadPos
		for ; len(changes) >= 3 && !t.Failed(); changes = changes[3:] {
			change(p, changes)
			before := bytes.Clone(p.mem)
			err := fuzzCall(t, r, p, int(changes[2]))
			if mode == Consume {
				copy(before[word:word+8], p.mem[word:word+8])
			}
			if !bytes.Equal(before, p.mem) {
				t.Error("something other than readPos was stored")
			}
			if r.Position() > r.mask || r.Committed() > r.mask || r.Uncommitted() >= r.Capacity() {
				t.Errorf("read to %d, committed to %d", r.Position(), r.Committed())
			}
			if err != nil && !isAny(err, []error{ErrForeignRead, ErrRestarted, ErrShrunk, ErrInvalid, ErrLapped}) {
				t.Errorf("undocumented error: %v", err)
			}
		}
	})
}

// change applies one change to a ring: of a byte, of a whole word of the header,
// or of the file.
func change(p *plain, c []byte) {
	switch at := int(c[0]) | int(c[1]&15)<<8; c[1] >> 6 {
	case 0:
		p.mem[at%len(p.mem)] = c[2]
	case 1:
		at = at &^ 7 % HeaderSize % (len(p.mem) - 8) &^ 7
		binary.LittleEndian.PutUint64(p.mem[at:], uint64(c[2]))
	case 2:
		p.stands = !p.stands
	case 3:
		p.size += int64(int8(c[2]))
	}
}

func fuzzCall(t *testing.T, r *Reader, p *plain, n int) (err error) {
	t.Helper()
	switch n % 6 {
	case 0:
		err = r.Commit()
	case 1:
		_, err = r.Skip(uint64(n) & r.mask)
	case 2:
		_, err = r.Fingerprint(r.Position())
	case 3:
		err = r.CommitTo(uint64(n) & r.mask)
	default:
		total := 0
		_, err = r.Read(n%5, func(b Batch) {
			total += b.Len()
			if at := bytes.Index(p.mem, b.slots); at < 0 {
				t.Error("a batch that isn't in the ring")
			}
		})
		if total >= r.Capacity() {
			t.Errorf("%d events of a ring of %d slots", total, r.Capacity())
		}
	}
	return err
}

// fuzzBatch decodes every event of a batch and encodes it again.
func fuzzBatch(t *testing.T, b Batch) {
	t.Helper()
	views := len(b.Timed()) + len(b.Categorized()) + len(b.Typed())
	if views != b.Len() {
		t.Errorf("%d events in all views, want %d", views, b.Len())
	}
	copied := Batch{layout: b.layout, slots: alignedBytes(len(b.slots))}
	for i := range b.Len() {
		e := b.Event(i)
		if e.Named != b.layout.Named() {
			t.Errorf("event %d of layout %v is named: %v", i, b.layout, e.Named)
		}
		_ = e.EventName()
		_ = e.Category.String()
		must.OK(t, copied.put(i, &e))
		if again := copied.Event(i); again != e {
			t.Errorf("event %d: %+v, encoded and decoded again %+v", i, e, again)
		}
	}
}

// known checks that err is one of the documented errors.
func known(t *testing.T, err error) {
	t.Helper()
	if !isAny(err, []error{ErrNotRing, ErrNotReady, ErrInvalid, ErrUnknownVersion}) {
		t.Errorf("undocumented error: %v", err)
	}
	for _, l := range Layouts() {
		if strings.Contains(err.Error(), fmt.Sprintf("%v %d ", ErrUnknownVersion, l.Version())) {
			t.Errorf("a known version: %v", err)
		}
	}
}
