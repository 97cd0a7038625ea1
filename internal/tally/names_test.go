// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func namedEvent(c ringbuf.Category, name string, v uint64) ringbuf.Event {
	e := ringbuf.Event{Category: c, Named: true, Value: v}
	copy(e.Name[:], name) // all 32 bytes; an agent writes 31 and a NUL
	return e
}

// key is the category and the name that an event is reported as.
type key struct{ category, name string }

func list(events ...ringbuf.Event) []ringbuf.Event { return events }

func TestNamesAreReportedAsValidUTF8(t *testing.T) {
	const backend = ringbuf.CategoryBackend
	long := strings.Repeat("x", 32)
	event := func(name string, v uint64) ringbuf.Event { return namedEvent(backend, name, v) }
	for name, tt := range map[string]struct {
		events []ringbuf.Event
		want   map[key]string // number, sum and last value
	}{
		"no NUL":              {list(event(long, 1)), map[key]string{{"backend", long}: "1 1 1"}},
		"bytes after the NUL": {list(event("a\x00b", 1), event("a\x00c", 2), event("a", 3)), map[key]string{{"backend", "a"}: "3 6 3"}},
		"empty":               {list(event("", 1)), map[key]string{{"backend", ""}: "1 1 1"}},
		"not UTF-8, equal after replacement": {
			list(event("a\xffb", 1), event("a\xfe\xfdb", 2), event("a\uFFFDb", 3)), map[key]string{{"backend", "a\uFFFDb"}: "3 6 3"},
		},
		"cut in the middle of a character": {list(event(long[:31]+"ä", 1)), map[key]string{{"backend", long[:31] + "\uFFFD"}: "1 1 1"}},
		"only invalid UTF-8":               {list(event(strings.Repeat("\xff", 32), 1)), map[key]string{{"backend", "\uFFFD"}: "1 1 1"}},
		"every other byte is invalid UTF-8": {
			list(event(strings.Repeat("\xffa", 16), 1)), map[key]string{{"backend", strings.Repeat("\uFFFDa", 16)}: "1 1 1"},
		},
		"one name in several categories": {
			list(event("a", 1), namedEvent(ringbuf.CategoryCustom, "a", 2), namedEvent(-7, "a", 3), namedEvent(8, "a", 4)),
			map[key]string{{"backend", "a"}: "1 1 1", {"custom", "a"}: "1 2 2", {"unknown", "a"}: "2 7 4"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			agent := NewAgent(shapeOf(t, Config{}))
			feed(t, agent, ringbuf.V1, tt.events)
			got := make(map[key]string)
			for _, s := range agent.Series() {
				got[key{s.Category(), s.Name}] = fmt.Sprint(s.Events, s.Sum.Lo, s.Last())
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// Existing series keep counting.
func TestEventsBeyondTheLimitOfNamesCountAsOverflow(t *testing.T) {
	for _, l := range ringbuf.Layouts() {
		t.Run(l.String(), func(t *testing.T) {
			const limit = 4
			newName := func(c ringbuf.Category, i int) ringbuf.Event {
				e := ringbuf.Event{Category: c, Type: ringbuf.Type(1000 + i), Value: uint64(i)}
				if l.Named() {
					e = ringbuf.NewNamedEvent(c, fmt.Sprint("event ", i), uint64(i))
				}
				return e
			}
			agent := NewAgent(shapeOf(t, Config{MaxNames: limit}))
			for i := range 20 {
				feed(t, agent, l, []ringbuf.Event{
					newName(ringbuf.CategoryBackend, i), newName(ringbuf.CategoryMemory, i),
					newName(ringbuf.CategoryBackend, 0), ringbuf.NewEvent(ringbuf.TypeTxBytes, 1),
				})
			}
			type totals struct {
				Series, Plain, Valued int
				Events, Value         any // the points of the overflow
				First, Sizes          uint64
			}
			plain, valued := agent.Overflow()
			points := pointsOf(agent.Snapshot())
			got := totals{
				len(agent.Series()), int(plain.Events), int(valued.Events),
				points["nixl.events{otel.metric.overflow=true}"], points["nixl.event.value{otel.metric.overflow=true}"],
				agent.Series()[0].Events, agent.Size(Transmit).Count(),
			}
			// In each category, 2 of the 20 names have a series. Without categories, 4 of the 20 types have one.
			want := totals{Series: limit, Plain: 18, Valued: 18, Events: int64(36), Value: int64(189), First: 21, Sizes: 20}
			if l >= ringbuf.V3 {
				want.Plain, want.Valued, want.Events, want.Value, want.First = 32, 0, int64(32), nil, 22
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// A ring full of new names needs no memory once the limit is reached.
func TestFloodOfNamesDoesNotAllocateBeyondTheLimit(t *testing.T) {
	for _, l := range ringbuf.Layouts() {
		t.Run(l.String(), func(t *testing.T) {
			random := rand.New(rand.NewPCG(8, 8))
			flood := make([]ringbuf.Event, slots-1)
			agent := NewAgent(shapeOf(t, Config{}))
			total := uint64(0)
			for range 8 {
				for i := range flood {
					flood[i] = ringbuf.Event{Category: ringbuf.Category(random.IntN(12) - 2), Type: ringbuf.Type(random.Uint32())}
					if l.Named() {
						flood[i].Named = true
						for b := range flood[i].Name {
							flood[i].Name[b] = byte(random.Uint32())
						}
					}
				}
				b := batchOf(t, l, flood...)
				count := func() {
					agent.Add(b)
					total += uint64(b.Len())
				}
				count()
				if n := testing.AllocsPerRun(1, count); n > 0 {
					t.Errorf("%v allocations beyond the limit", n)
				}
			}
			checkCounts(t, agent, total)
			for _, s := range agent.Series() {
				if !utf8.ValidString(s.Name) {
					t.Errorf("name %q isn't UTF-8", s.Name)
				}
			}
		})
	}
}

// checkCounts checks invariants of all totals.
func checkCounts(t *testing.T, a *Agent, events uint64) {
	t.Helper()
	plain, valued := a.Overflow()
	sum := plain.Events + valued.Events
	a.Events(func(_, _ string, n uint64) { sum += n })
	if sum != events {
		t.Errorf("%d events are counted, want %d", sum, events)
	}
	if n := len(a.Series()); n > 64 {
		t.Errorf("%d series", n)
	}
	for name, h := range map[string]*Histogram{
		"tx": a.Size(Transmit), "rx": a.Size(Receive), "duration": a.Duration(), "post": a.PostDuration(),
	} {
		sum := h.Buckets().Zero
		for _, n := range append(h.Counts(), h.Buckets().Counts...) {
			sum += n
		}
		if h.Kind() != NoHistogram && sum != h.Count() {
			t.Errorf("%s: count %d, and %d in buckets", name, h.Count(), sum)
		}
		if h.Min() > h.Max() || h.Last() > h.Max() || h.Last() < h.Min() {
			t.Errorf("%s: min %v, max %v, last %v", name, h.Min(), h.Max(), h.Last())
		}
	}
}

func TestAgentNeedsAtMost8KiB(t *testing.T) {
	const agents = 256
	for _, l := range ringbuf.Layouts() {
		t.Run(l.String(), func(t *testing.T) {
			s := shapeOf(t, Config{})
			b := batchOf(t, l, transferMix(rand.New(rand.NewPCG(1, 2)))...)
			list := make([]*Agent, agents)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			for i := range list {
				list[i] = NewAgent(s)
				list[i].Add(b)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			each := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / agents
			t.Logf("%d bytes", each)
			if each > 8<<10 {
				t.Errorf("%d bytes for each agent, want at most 8 KiB", each)
			}
			runtime.KeepAlive(list)
		})
	}
}
