//go:build linux && (amd64 || arm64)

package watch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestRingsOfAllLayoutsAreDrained(t *testing.T) {
	x := newWorld(t)
	want := make(map[string]int64)
	for i, layout := range ringbuf.Layouts() {
		push(t, x.ring(layout.String(), layout, 64), i+1)
		want[layout.String()] = int64(i + 1)
	}
	w := x.watcher(nil)
	w.Scan()
	w.Drain()
	if diff := cmp.Diff(want, transmitted(w)); diff != "" {
		t.Error(diff)
	}
	w.Drain()
	if diff := cmp.Diff(want, transmitted(w)); diff != "" {
		t.Errorf("a second drain counts again: %s", diff)
	}
}

func TestLoopsFindAndDrainNewRings(t *testing.T) {
	x := newWorld(t)
	w := x.watcher(func(c *Config) { c.Now = nil })
	w.Start(nil)
	ring := x.ring("late", ringbuf.V4, 64)
	if n := x.await(RingOpened); n.Path != ring.Path() {
		t.Errorf("opened %s", n.Path)
	}
	// The drain loop alone makes room for more than the ring holds.
	for pushed := 0; pushed < 500; {
		if err := ring.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, 1)); err == nil {
			pushed++
		} else if !errors.Is(err, ringbuf.ErrFull) {
			t.Fatal(err)
		}
	}
	w.Stop()
	w.Drain()
	if got := transmitted(w)["late"]; got != 500 {
		t.Errorf("%d events of 500 were counted", got)
	}
}

func TestIncludeExcludeAndFolders(t *testing.T) {
	x := newWorld(t)
	if err := os.MkdirAll(filepath.Join(x.dir, "pod/rank"), 0o750); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b.tmp", ".hidden", "pod/a", "pod/b.tmp", "pod/rank/a"} {
		x.ring(name, ringbuf.V4, 8)
	}
	for _, tc := range []struct {
		include, exclude []string
		want             []string
	}{
		{nil, nil, []string{".hidden", "a", "b.tmp"}},
		{nil, []string{"*.tmp", ".*"}, []string{"a"}},
		{[]string{"pod/*"}, nil, []string{"pod/a", "pod/b.tmp"}},
		{[]string{"*/*/a", "a"}, nil, []string{"a", "pod/rank/a"}},
		{[]string{"**"}, []string{"**/*.tmp"}, []string{".hidden", "a", "pod/a", "pod/rank/a"}},
		{[]string{"**"}, []string{"pod"}, []string{".hidden", "a", "b.tmp"}},
		{[]string{"{a,pod/a}"}, nil, []string{"a", "pod/a"}},
	} {
		w := x.watcher(func(c *Config) { c.Include, c.Exclude = tc.include, tc.exclude })
		w.Scan()
		var got []string
		w.Agents(func(v View) { got = append(got, v.Name) })
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("include %q, exclude %q: %s", tc.include, tc.exclude, diff)
		}
		w.Close()
	}
}

func TestOneNameInTwoDirectoriesIsTwoAgents(t *testing.T) {
	x := newWorld(t)
	other := t.TempDir()
	push(t, x.ring("rank0", ringbuf.V4, 8), 1)
	there, err := ringbuf.Create(filepath.Join(other, "rank0"), ringbuf.V4, 8)
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	push(t, there, 2)
	w := x.watcher(func(c *Config) { c.Directories = append(c.Directories, other) })
	w.Scan()
	w.Drain()
	got := make(map[string]int64)
	w.Agents(func(v View) {
		got[v.Dir] = v.Tally.Size(0).Total().Int64()
		if v.Dir == x.dir && InstanceID("host", v.Dir, v.Name) == InstanceID("host", other, v.Name) {
			t.Error("both have the same instance id")
		}
	})
	if diff := cmp.Diff(map[string]int64{x.dir: 1, other: 2}, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsNoRingIsRefusedOnceAndLeft(t *testing.T) {
	x := newWorld(t)
	touch(t, filepath.Join(x.dir, "text"), strings.Repeat("some text\n", 10))
	touch(t, filepath.Join(x.dir, "short"), "short")
	if err := syscall.Mkfifo(filepath.Join(x.dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(x.dir, "text"), filepath.Join(x.dir, "link")); err != nil {
		t.Fatal(err)
	}
	broken := x.ring("broken", ringbuf.V4, 8)
	if err := os.Truncate(broken.Path(), 100); err != nil {
		t.Fatal(err)
	}
	push(t, x.ring("whole", ringbuf.V4, 8), 3)
	w := x.watcher(nil)
	for range 5 {
		w.Scan()
		w.retry()
		w.Drain()
		x.pass(time.Minute)
	}
	if got := transmitted(w); got["whole"] != 3 || len(got) != 1 {
		t.Errorf("totals are %v", got)
	}
	if n := x.told(NotRings); n != 4 {
		t.Errorf("%d files were said not to be rings, not 4: %v", n, x.notices)
	}
	if n := x.told(RingRefused); n != 1 {
		t.Errorf("%d rings were said to be refused, not 1: %v", n, x.notices)
	}
}

func TestFileThatBecomesARingIsOpened(t *testing.T) {
	x := newWorld(t)
	path := filepath.Join(x.dir, "agent")
	touch(t, path, "")
	w := x.watcher(nil)
	w.Scan()
	if err := w.State(); err != nil {
		t.Errorf("an agent that is starting is no error: %v", err)
	}
	push(t, x.ring("agent", ringbuf.V4, 8), 1)
	w.Scan()
	w.Drain()
	if got := transmitted(w)["agent"]; got != 1 {
		t.Errorf("%d events of 1 were counted", got)
	}
}

func TestManyRefusalsMakeOneNotice(t *testing.T) {
	x := newWorld(t)
	for i := range maxSingle + 1 {
		ring := x.ring(strings.Repeat("x", i+1), ringbuf.V4, 8)
		if err := os.Truncate(ring.Path(), 100); err != nil {
			t.Fatal(err)
		}
	}
	w := x.watcher(nil)
	w.Scan()
	w.Scan()
	if n := x.told(RingRefused); n != 1 {
		t.Errorf("%d notices", n)
	}
	if err := w.State(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("none of %d rings", maxSingle+1)) {
		t.Errorf("state is %v", err)
	}
}

func TestMissingDirectoryIsWaitedFor(t *testing.T) {
	x := newWorld(t)
	dir := filepath.Join(x.dir, "later")
	w := x.watcher(func(c *Config) { c.Directories = []string{dir} })
	w.Scan()
	w.Scan()
	if err := w.State(); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("state is %v", err)
	}
	if err := os.Mkdir(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	push(t, x.ring("later/agent", ringbuf.V4, 8), 1)
	w.Scan()
	w.Drain()
	if err := w.State(); err != nil || transmitted(w)["agent"] != 1 {
		t.Errorf("state is %v, totals %v", err, transmitted(w))
	}
	if x.told(DirectoryMissing) != 1 || x.told(DirectoryFound) != 1 {
		t.Errorf("notices are %v", x.notices)
	}
}

func TestMoreRingsThanAllowed(t *testing.T) {
	x := newWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		x.ring(name, ringbuf.V4, 8)
	}
	w := x.watcher(func(c *Config) { c.MaxRings = 2 })
	w.Scan()
	w.Scan()
	if got := transmitted(w); len(got) != 2 || x.told(RingLimit) != 1 {
		t.Errorf("%d rings open, %d notices", len(got), x.told(RingLimit))
	}
}

func TestSecondConsumerIsRefused(t *testing.T) {
	x := newWorld(t)
	push(t, x.ring("agent", ringbuf.V4, 8), 1)
	first, second := x.watcher(nil), x.watcher(nil)
	first.Scan()
	second.Scan()
	if err := second.State(); err == nil || !strings.Contains(err.Error(), "consumed already") {
		t.Errorf("state of the second is %v", err)
	}
	first.Close()
	x.pass(time.Minute)
	second.Scan()
	second.Drain()
	if got := transmitted(second)["agent"]; got != 1 || second.State() != nil {
		t.Errorf("once the first is gone, the second counts %d", got)
	}
}

func TestObserverLeavesTheRingAsItIs(t *testing.T) {
	x := newWorld(t)
	ring := x.ring("agent", ringbuf.V4, 8)
	push(t, ring, 7)
	before, _ := os.ReadFile(ring.Path())
	w := x.watcher(func(c *Config) { c.Mode = ringbuf.Observe })
	w.Scan()
	for range 3 {
		w.Drain()
	}
	v := view(t, w)
	if v.Tally.Size(0).Count() != 7 || v.Tally.Saturations() != 1 || v.Tally.Utilization() != 1 {
		t.Errorf("counted %d, %d saturations, utilization %v", v.Tally.Size(0).Count(), v.Tally.Saturations(), v.Tally.Utilization())
	}
	if after, _ := os.ReadFile(ring.Path()); !cmp.Equal(before, after) {
		t.Error("the ring has changed")
	}
	if x.told(RingFull) != 1 {
		t.Errorf("notices are %v", x.notices)
	}
}

func TestDrainAllocatesNothing(t *testing.T) {
	x := newWorld(t)
	ring := x.ring("agent", ringbuf.V4, 64)
	w := x.watcher(nil)
	w.Scan()
	event := []ringbuf.Event{ringbuf.NewEvent(ringbuf.TypeTxBytes, 1)}
	if n := testing.AllocsPerRun(100, func() {
		if _, err := ring.PushBatch(event); err != nil {
			t.Fatal(err)
		}
		w.Drain()
	}); n != 0 {
		t.Errorf("a drain allocates %v times", n)
	}
}

func TestPace(t *testing.T) {
	w := newWorld(t).watcher(nil)
	for h, least := range map[haste]time.Duration{soon: w.drainInterval / 8, atOnce: minDrainInterval} {
		d := w.drainInterval
		for range 10 {
			before := d
			if d = w.pace(d, h); d >= before && d != least {
				t.Errorf("haste %d doesn't shorten %v", h, before)
			}
		}
		if d != least {
			t.Errorf("haste %d leads to %v, want %v", h, d, least)
		}
	}
	d := minDrainInterval
	for range 10 {
		d = w.pace(d, atLeisure)
	}
	if d != 50*time.Millisecond {
		t.Errorf("back to %v", d)
	}
}

// A ring that fills once in a run interval, as an agent at its ceiling does, is
// in less haste than one that fills all the time.
func TestHaste(t *testing.T) {
	x := newWorld(t)
	ring := x.ring("agent", ringbuf.V4, 8)
	w := x.watcher(nil)
	w.Scan()
	for _, step := range []struct {
		passed time.Duration
		events int
		want   haste
	}{
		{time.Hour, 4, atLeisure},
		{time.Millisecond, 5, soon},
		{DefaultRunInterval, 7, soon},
		{DefaultRunInterval / 2, 7, soon},
		{DefaultRunInterval/2 - time.Millisecond, 7, atOnce},
		{time.Millisecond, 7, atOnce},
		{time.Millisecond, 4, atLeisure},
		{DefaultRunInterval, 7, soon},
	} {
		x.pass(step.passed)
		push(t, ring, step.events)
		if got := w.round(); got != step.want {
			t.Errorf("%d events after %v: haste %d, want %d", step.events, step.passed, got, step.want)
		}
	}
}

func TestNobodyCanFillTheLog(t *testing.T) {
	x := newWorld(t)
	w := x.watcher(nil)
	w.Scan()
	for i := range 10 * maxSingle {
		ring := x.ring(strings.Repeat("x", i+1), ringbuf.V4, 8)
		if err := os.Truncate(ring.Path(), 100); err != nil {
			t.Fatal(err)
		}
		w.lookAt(ring.Path())
	}
	if n := x.told(RingRefused); n != maxSingle {
		t.Errorf("%d notices between two scans", n)
	}
	w.Scan()
	if n := x.told(RingRefused); n != maxSingle+1 {
		t.Errorf("%d notices after the scan", n)
	}
}
