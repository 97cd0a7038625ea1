//go:build linux && (amd64 || arm64)

package watch

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// rings is of how many rings something was told: by name, or as a number.
func (x *world) rings(k Kind) (n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, notice := range x.notices {
		many := 1
		if notice.Kind == k && notice.Path == "" {
			if _, err := fmt.Sscanf(notice.Text, "%d ", &many); err != nil {
				x.t.Errorf("notice is of no number of rings: %v", notice)
			}
		}
		if notice.Kind == k {
			n += many
		}
	}
	return n
}

func (x *world) crowd(n int) []*ringbuf.Writer {
	x.t.Helper()
	agents := make([]*ringbuf.Writer, n)
	for i := range agents {
		agents[i] = x.ring(fmt.Sprintf("agent-%02d", i), ringbuf.V4, 8)
	}
	return agents
}

// Whatever happens to any number of rings at once is told of each of them, in a
// few lines.
func TestCrowdsAreSummedUp(t *testing.T) {
	trouble := map[Kind]func(t *testing.T, x *world, w *Watcher, agents []*ringbuf.Writer){
		RingOpened: func(*testing.T, *world, *Watcher, []*ringbuf.Writer) {},
		RingFull: func(t *testing.T, _ *world, _ *Watcher, agents []*ringbuf.Writer) {
			for _, a := range agents {
				push(t, a, 7)
			}
		},
		RingRestart: func(t *testing.T, x *world, w *Watcher, agents []*ringbuf.Writer) {
			for _, a := range agents {
				push(t, a, 1)
			}
			w.Drain()
			x.crowd(len(agents))
		},
		RingRemoved: func(t *testing.T, _ *world, _ *Watcher, agents []*ringbuf.Writer) {
			for _, a := range agents {
				if err := os.Remove(a.Path()); err != nil {
					t.Fatal(err)
				}
			}
		},
		RingRetired: func(t *testing.T, x *world, w *Watcher, agents []*ringbuf.Writer) {
			for _, a := range agents {
				if err := a.Close(); err != nil {
					t.Fatal(err)
				}
			}
			transmitted(w) // or it would be kept
			x.pass(DefaultStaleAfter)
		},
		RingForeign: func(t *testing.T, _ *world, w *Watcher, agents []*ringbuf.Writer) {
			for i, a := range agents {
				push(t, a, 5)
				w.Drain()
				push(t, a, 2)
				stealRead(t, a.Path(), byte(i%2+6)) // positions differ, the cause doesn't
			}
		},
		RingRefused: func(t *testing.T, _ *world, w *Watcher, agents []*ringbuf.Writer) {
			for _, a := range agents {
				ringtest.Edit(t, a.Path(), func(h *ringtest.Header) { h.Version = 5 })
			}
			w.Drain()
		},
	}
	for kind, happens := range trouble {
		for _, n := range []int{1, maxSingle, maxSingle + 1, 11, 16, 64} {
			t.Run(fmt.Sprintf("kind %d of %d", kind, n), func(t *testing.T) {
				x := newWorld(t)
				agents := x.crowd(n)
				w := x.watcher(nil)
				w.Scan()
				happens(t, x, w, agents)
				w.Drain()
				w.Scan()
				w.Drain()
				w.Scan()
				if told := x.rings(kind); told != n {
					t.Errorf("it is told of %d rings: %v", told, x.notices)
				}
				if lines := x.told(kind); lines > maxSingle+1 {
					t.Errorf("%d notices: %v", lines, x.notices)
				}
			})
		}
	}
}

// Who is woken by a line about 30 rings wants to know what is wrong with all of
// them.
func TestCausesAreToldApart(t *testing.T) {
	x := newWorld(t)
	for i, a := range x.crowd(30) {
		if i%3 == 0 {
			ringtest.Edit(t, a.Path(), func(h *ringtest.Header) { h.Version = 5 })
		} else if err := os.Truncate(a.Path(), 100); err != nil {
			t.Fatal(err)
		}
	}
	x.watcher(nil).Scan()
	var got []string
	for _, n := range x.notices {
		got = append(got, strings.ReplaceAll(n.String(), x.dir+"/", ""))
	}
	slices.Sort(got) // they come in the directory's order
	want := []string{
		"10 rings, agent-00 to agent-27: ring can't be opened: open ring agent-00: unknown ring version 5 (known are 1 to 4): " +
			"this agent needs a newer reader; the ring is left as it is",
		"20 rings, agent-01 to agent-29: ring can't be opened: open ring agent-01: invalid ring: " +
			"8 slots don't make a file of 100 bytes; was it truncated?",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// How often something has happened to each ring is no cause of its own.
func TestCountsMakeNoCauses(t *testing.T) {
	list := make([]Notice, 64)
	for i := range list {
		list[i] = Notice{Kind: RingRestart, Path: fmt.Sprintf("/d/%02d", i), Text: "agent started anew", Again: i % 3}
	}
	sums := sum(list, false)
	if len(sums) != 1 || sums[0].String() !=
		"64 rings, /d/00 to /d/63: agent started anew (and 63 times more since that was last said)" {
		t.Errorf("%d notices, the first %v", len(sums), sums[0])
	}
}

// However many causes there are, the log gets a few lines.
func TestCausesAreLimited(t *testing.T) {
	list := make([]Notice, 100)
	for i := range list {
		list[i] = Notice{Kind: RingBroken, Path: fmt.Sprintf("/d/%02d", i), Text: "broken", Err: fmt.Errorf("cause %d", i)}
	}
	sums := sum(list, true)
	last := sums[len(sums)-1]
	if len(sums) != maxCauses || last.String() !=
		"93 more rings, /d/07 to /d/99: for several reasons, of which the first is: broken: cause 7" {
		t.Errorf("%d notices, the last %v", len(sums), last)
	}
}

// A look through the directories that doesn't end keeps nothing back, and
// neither does the end of the watcher.
func TestNoticesWaitForNobody(t *testing.T) {
	for name, then := range map[string]func(x *world, w *Watcher){
		"hanging directory": func(x *world, w *Watcher) {
			w.scanning.Lock()
			defer w.scanning.Unlock()
			x.pass(keptFor)
			w.Drain()
			w.loops.Wait()
		},
		"close": func(_ *world, w *Watcher) { w.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			x := newWorld(t)
			agents := x.crowd(64)
			w := x.watcher(nil)
			w.Scan()
			for _, a := range agents {
				push(t, a, 7)
			}
			w.Drain()
			if n := x.told(RingFull); n != maxSingle {
				t.Errorf("%d notices at once, want %d", n, maxSingle)
			}
			then(x, w)
			if n := x.rings(RingFull); n != 64 {
				t.Errorf("it was told of %d rings", n)
			}
		})
	}
}

// A name in a directory of everybody's doesn't get a line of its own.
func TestNamesDontBreakTheLine(t *testing.T) {
	for path, want := range map[string]string{
		"/run/nixl/decode-0":        "/run/nixl/decode-0: text",
		"/run/nixl/größe":           "/run/nixl/größe: text",
		"/tmp/a\nwarn\tall is well": `"/tmp/a\nwarn\tall is well": text`,
		"/tmp/\x1b[2J":              `"/tmp/\x1b[2J": text`,
		"/tmp/\xff":                 `"/tmp/\xff": text`,
		"/tmp/ ":                    `"/tmp/ ": text`,
	} {
		if got := (Notice{Kind: RingOpened, Path: path, Text: "text"}).Message(); got != want {
			t.Errorf("message is %s, want %s", got, want)
		}
	}
	many := make([]Notice, maxSingle+1)
	for i := range many {
		many[i] = Notice{Kind: NotRings, Path: fmt.Sprintf("/tmp/\n%d", i), Text: "text", Err: errors.New("cause")}
	}
	if got := sum(many, false); len(got) != 1 || got[0].String() != `9 files, "/tmp/\n0" to "/tmp/\n8": text: cause` {
		t.Errorf("notices are %v", got)
	}
}

// What is told again is again told one by one, once some time has passed.
func TestFewAreToldByNameAgain(t *testing.T) {
	x := newWorld(t)
	w := x.watcher(nil)
	for range 3 {
		for range maxSingle {
			w.report(Notice{Kind: RingFull, Path: "/d/a", Text: "full"})
		}
		x.pass(rescanEvery)
		w.Scan()
	}
	if n := x.told(RingFull); n != 3*maxSingle {
		t.Errorf("%d notices of %d", n, 3*maxSingle)
	}
}
