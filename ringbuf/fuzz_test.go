//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/nixl-otel/nixl-otel/internal/ringtest"
)

// maxFuzzFile keeps the corpus small enough for plain go test.
const maxFuzzFile = 4096

// seedRings calls add with every real ring that is small, whole and cut short.
func seedRings(f *testing.F, add func(ring []byte)) {
	f.Helper()
	for _, c := range ringtest.Cases(f) {
		ring := bytesOf(f, c.File)
		if len(ring) <= maxFuzzFile {
			add(ring)
		}
		add(ring[:headerSize])
		add(ring[:min(len(ring), 57)])
	}
}

// Any header with any size of file: layout doesn't panic, and what it accepts
// can be worked with without looking at the header again.
func FuzzHeader(f *testing.F) {
	seedRings(f, func(ring []byte) { f.Add(ring[:headerSize], int64(len(ring))) })
	f.Add(ringtest.NewHeader(4, 1<<60).Bytes(), int64(headerSize))
	f.Add(ringtest.NewHeader(2, 1<<40).Bytes(), int64(1)<<62)
	f.Add(ringtest.NewHeader(-1, 64).Bytes(), int64(headerSize+64*16))
	f.Add(ringtest.NewHeader(5, 64).Bytes(), int64(headerSize+64*24))
	f.Fuzz(func(t *testing.T, b []byte, size int64) {
		if len(b) < headerSize || size < headerSize {
			return // readHeader doesn't get that far
		}
		h := decodeHeader(b)
		l, err := h.layout(size)
		if err != nil {
			known(t, err)
			return
		}
		switch {
		case !l.known() || l.Version() != h.Version,
			h.Capacity < 2 || h.Capacity > MaxCapacity || bits.OnesCount64(h.Capacity) != 1,
			h.Mask != h.Capacity-1 || h.WritePos > h.Mask || h.ReadPos > h.Mask,
			size != headerSize+int64(h.Capacity)*int64(l.EventSize()):
			t.Errorf("accepted %+v in %d bytes as %v", h, size, l)
		}
	})
}

// Any bytes as a file. Whatever they are, reading them doesn't panic, hands
// out nothing that isn't a slot of the file, and changes nothing but readPos.
func FuzzFile(f *testing.F) {
	seedRings(f, func(ring []byte) { f.Add(ring) })
	f.Fuzz(func(t *testing.T, ring []byte) {
		if len(ring) > 1<<20 {
			return
		}
		path := filepath.Join(t.TempDir(), "agent")
		ok(t, os.WriteFile(path, ring, 0o600))
		for _, mode := range []Mode{Observe, Consume} {
			fuzzRead(t, path, ring, mode)
		}
	})
}

func fuzzRead(t *testing.T, path string, ring []byte, mode Mode) {
	t.Helper()
	r, err := OpenReader(path, mode)
	if err != nil {
		known(t, err)
		equal(t, "a file that was refused", bytesOf(t, path), ring)
		return
	}
	defer closeNow(t, r)
	h := decodeHeader(ring)
	slots := ring[headerSize:]
	size := r.Layout().EventSize()
	pending := int((h.WritePos - h.ReadPos) & h.Mask)
	at, total := int(h.ReadPos), 0
	for limit := range 3 { // all but the first two passes are without a limit
		_, err := r.Read((limit+1)%3, func(b Batch) {
			if b.Len() == 0 {
				t.Error("an empty batch")
			}
			if got, want := b.slots, slots[at*size:(at+b.Len())*size]; !bytes.Equal(got, want) {
				t.Errorf("%d slots from %d are % x, the file has % x", b.Len(), at, got, want)
			}
			fuzzBatch(t, b)
			at = (at + b.Len()) % r.Capacity()
			total += b.Len()
		})
		if err != nil {
			t.Errorf("read: %v", err)
		}
	}
	if total != pending {
		t.Errorf("%d events, %d are pending", total, pending)
	}
	if err := r.Commit(); err != nil {
		t.Errorf("commit: %v", err)
	}
	want := ring
	if mode == Consume {
		want = bytes.Clone(ring)
		binary.LittleEndian.PutUint64(want[offReadPos:], h.WritePos)
	}
	equal(t, mode.String()+": the file afterwards", bytesOf(t, path), want)
}

// fuzzBatch decodes every event of a batch, and puts it back.
func fuzzBatch(t *testing.T, b Batch) {
	t.Helper()
	views := len(b.Timed()) + len(b.Named()) + len(b.Categorized()) + len(b.Typed())
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
		ok(t, copied.put(i, &e))
		if again := copied.Event(i); again != e {
			t.Errorf("event %d: %+v, put and read again %+v", i, e, again)
		}
	}
}

// One slot of each layout, from any bytes.
func FuzzEvent(f *testing.F) {
	for _, c := range ringtest.Cases(f) {
		if c.Readable() {
			f.Add(bytesOf(f, c.File)[headerSize : headerSize+2*16])
			f.Add(bytesOf(f, c.File)[headerSize+int(c.ReadPos):][:16])
		}
	}
	f.Add(bytes.Repeat([]byte{0xff}, maxEventSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		aligned := alignedBytes(maxEventSize)
		copy(aligned, b)
		for _, l := range Layouts() {
			batch := Batch{layout: l, slots: aligned[:l.EventSize()]}
			fuzzBatch(t, batch)
			e := batch.Event(0)
			le := binary.LittleEndian
			switch size := l.EventSize(); {
			case e.Value != le.Uint64(aligned[size-8:]):
				t.Errorf("%v: value %d", l, e.Value)
			case l == V1 && (e.TimestampMicros != le.Uint64(aligned) || uint32(e.Category) != le.Uint32(aligned[8:])):
				t.Errorf("%v: %+v", l, e)
			case (l == V2 || l == V2Named) && uint32(e.Category) != le.Uint32(aligned):
				t.Errorf("%v: category %v", l, e.Category)
			case l == V2 && uint32(e.Type) != le.Uint32(aligned[4:]):
				t.Errorf("%v: type %d", l, e.Type)
			case (l == V3 || l == V4) && uint32(e.Type) != le.Uint32(aligned):
				t.Errorf("%v: type %d", l, e.Type)
			case (l == V3 || l == V4) && !l.Knows(e.Type) && e.Category != -1:
				t.Errorf("%v: type %d has category %v", l, e.Type, e.Category)
			}
		}
	})
}

// Names are bytes of another process.
func FuzzName(f *testing.F) {
	for _, s := range []string{"", "agent_tx_bytes", "näme \"q\" \\b", "\xff\xfe", "a\x00b", "0123456789012345678901234567890123456789"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var raw Name
		copy(raw[:], s)
		want := s[:min(len(s), len(raw))]
		if i := bytes.IndexByte(raw[:], 0); i >= 0 {
			want = string(raw[:i])
		}
		if got := raw.String(); got != want || string(raw.Bytes()) != want {
			t.Errorf("the name in % x is %q, want %q", raw, got, want)
		}
		made := MakeName(s)
		if made[len(made)-1] != 0 {
			t.Errorf("MakeName(%q) leaves no NUL", s)
		}
		if got := made.String(); !bytes.HasPrefix([]byte(s), []byte(got)) || utf8.ValidString(got) && len(got) > 31 {
			t.Errorf("MakeName(%q) is %q", s, got)
		}
	})
}

// known checks that an error is one that callers can tell by what the package
// promises.
func known(t *testing.T, err error) {
	t.Helper()
	var version *UnknownVersionError
	if !errors.Is(err, ErrNotRing) && !errors.Is(err, ErrNotReady) && !errors.Is(err, ErrInvalid) && !errors.As(err, &version) {
		t.Errorf("an error of no kind: %v", err)
	}
	if version != nil && version.Version >= 1 && version.Version <= V4.Version() {
		t.Errorf("version %d is called unknown", version.Version)
	}
}
