package tally_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// FuzzAdd puts arbitrary bytes into the slots of a ring. Whatever they are,
// nothing panics, no event is lost, and the totals are those of the plain way.
func FuzzAdd(f *testing.F) {
	for i, l := range ringbuf.Layouts() {
		f.Add(uint8(i), uint16(40), slotsOf(f, l))
		f.Add(uint8(i), uint16(3), bytes.Repeat([]byte{0xff}, 10*l.EventSize()))
		f.Add(uint8(i), uint16(0), make([]byte, 10*l.EventSize()))
	}
	for _, c := range ringtest.Cases(f) {
		if b, err := os.ReadFile(c.File); err == nil && c.Readable() && len(b) < 4096 {
			for i := range ringbuf.Layouts() {
				f.Add(uint8(i), uint16(2), b[ringtest.HeaderSize:])
			}
		}
	}
	path := filepath.Join(f.TempDir(), "agent")
	shape := shape(f, tally.Config{})
	f.Fuzz(func(t *testing.T, layout uint8, split uint16, slots []byte) {
		l := ringbuf.Layouts()[int(layout)%len(ringbuf.Layouts())]
		events := min(len(slots)/l.EventSize(), 1<<10)
		capacity := uint64(2)
		for capacity <= uint64(events) {
			capacity *= 2
		}
		h := ringtest.NewHeader(l.Version(), capacity)
		h.WritePos = uint64(events)
		slots = slots[:events*l.EventSize()]
		file := append(append(h.Bytes(), slots...), make([]byte, int(capacity)*l.EventSize()-len(slots))...)
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := ringbuf.OpenReader(path, ringbuf.Consume)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if r.Layout() != l {
			t.Skip("a file of this size is of another layout")
		}
		agent, want := tally.NewAgent(shape), newModel()
		for _, limit := range []int{int(split), 0} {
			if _, err := r.Read(limit, func(b ringbuf.Batch) {
				agent.Add(b)
				for i := range b.Len() {
					want.add(l, b.Event(i))
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
		checkCounts(t, agent, uint64(events))
		if len(agent.Series()) < tally.DefaultMaxNames {
			compare(t, want, agent)
		}
	})
}

// slotsOf is some events of every sort as they stand in a ring.
func slotsOf(tb testing.TB, l ringbuf.Layout) []byte {
	tb.Helper()
	r := newRing(tb, l, 128)
	r.push(generator{rand.New(rand.NewPCG(1, 1)), l}.events(100))
	file, err := os.ReadFile(r.w.Path())
	if err != nil {
		tb.Fatal(err)
	}
	return file[ringtest.HeaderSize:]
}
