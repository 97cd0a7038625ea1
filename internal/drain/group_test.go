package drain

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// memory is the Backing of a ring in plain memory. Nobody knows its file
// system, so its loop isn't the one of local file systems.
type memory []byte

func (m memory) Stat() (ringbuf.FileState, error) {
	return ringbuf.FileState{Size: int64(len(m)), Age: int64(time.Hour)}, nil
}

func (memory) Guard(fn func()) error {
	fn()
	return nil
}

// desk is a group, a source of rings, and what both were told.
type desk struct {
	t *testing.T
	*Group

	mu      sync.Mutex
	notices []notice.Notice
	closed  map[*ringbuf.Reader]bool
	retired []string
	stuck   chan struct{} // what the agent stuck waits for; nil if it needn't
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	shape, err := tally.NewShape(tally.Config{})
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, closed: make(map[*ringbuf.Reader]bool)}
	d.Group = NewGroup(GroupConfig{
		Config: Config{Shape: shape, RunInterval: 100 * time.Millisecond, StaleAfter: time.Minute, Tap: d.tap},
		Report: d.report,
	})
	return d
}

func (d *desk) report(n notice.Notice) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notices = append(d.notices, n)
}

// hangs returns the notices about file systems that hang.
func (d *desk) hangs() (list []notice.Notice) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range d.notices {
		if n.Kind == notice.FileSystemHangs {
			list = append(list, n)
		}
	}
	return list
}

// hang makes the next event of the agent stuck block its loop until release is
// called.
func (d *desk) hang() (release func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := make(chan struct{})
	d.stuck = c
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.stuck = nil
		close(c)
	}
}

func (d *desk) tap(a Agent, _ ringbuf.Batch) {
	d.mu.Lock()
	c := d.stuck
	d.mu.Unlock()
	if c != nil && a.Name == "stuck" {
		<-c
	}
}

// Close implements Source.
func (d *desk) Close(r *ringbuf.Reader) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed[r] = true
	if err := r.Close(); err != nil {
		d.t.Error(err)
	}
}

// Reopen implements Source.
func (d *desk) Reopen(a Agent, _ *ringbuf.Reader) { d.t.Errorf("%s is to be opened again", a.Path) }

// Retire implements Source.
func (d *desk) Retire(a Agent, r *ringbuf.Reader) {
	d.Close(r)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.retired = append(d.retired, a.Path)
}

func (d *desk) isClosed(r *ringbuf.Reader) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed[r]
}

func (d *desk) open(name string, r *ringbuf.Reader) {
	d.Send(Opened{Agent: Agent{Name: name, Dir: "/rings", Path: "/rings/" + name}, Reader: r, From: d})
}

// inMemory makes a ring of an unknown file system.
func (d *desk) inMemory() (*ringbuf.Writer, *ringbuf.Reader) {
	d.t.Helper()
	mem := memory(make([]byte, ringbuf.V4.FileSize(64)))
	w, err := ringbuf.NewWriter(mem, mem, ringbuf.V4, 64)
	if err != nil {
		d.t.Fatal(err)
	}
	r, err := ringbuf.NewReader(mem, mem, ringbuf.Consume)
	if err != nil {
		d.t.Fatal(err)
	}
	return w, r
}

// onDisk makes a ring on a local file system.
func (d *desk) onDisk() (*ringbuf.Writer, *ringbuf.Reader) {
	d.t.Helper()
	path := filepath.Join(d.t.TempDir(), "ring")
	w, err := ringbuf.Create(path, ringbuf.V4, 64)
	if errors.Is(err, errors.ErrUnsupported) {
		d.t.Skip(err)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = w.Close() })
	r, err := ringbuf.OpenReader(path, ringbuf.Consume)
	if err != nil {
		d.t.Fatal(err)
	}
	return w, r
}

func (d *desk) push(w *ringbuf.Writer) {
	d.t.Helper()
	if err := w.Push(ringbuf.NewEvent(ringbuf.TypeTxRequests, 1)); err != nil {
		d.t.Fatal(err)
	}
}

// collect returns how many requests each agent is reported with, by name.
func (d *desk) collect() (Collection, map[string]int) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), 10*time.Second)
	defer cancel()
	c := d.Collect(ctx, false)
	if ctx.Err() != nil {
		d.t.Error("a collection takes until its context ends")
	}
	counts := make(map[string]int)
	for _, s := range c.Snapshots {
		if _, again := counts[s.Name]; again {
			d.t.Errorf("%s is reported twice", s.Name)
		}
		counts[s.Name] = int(s.Totals.Requests(tally.Transmit).Events)
	}
	return c, counts
}

func (d *desk) want(counts map[string]int) {
	d.t.Helper()
	_, got := d.collect()
	for name, n := range counts {
		if got[name] != n {
			d.t.Errorf("%s is reported with %d events, want %d", name, got[name], n)
		}
	}
	if len(got) != len(counts) {
		d.t.Errorf("reported are %v, want %v", got, counts)
	}
}

func (d *desk) stop() {
	d.t.Helper()
	if err := d.Stop(d.t.Context()); err != nil {
		d.t.Error(err)
	}
}

func TestCollectionsLeaveOutALoopThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		wh, rh := d.onDisk()
		ws, rs := d.inMemory()
		d.open("healthy", rh)
		d.open("stuck", rs)
		for round := 1; round <= 2; round++ {
			release := d.hang()
			d.push(wh)
			d.push(ws)
			d.want(map[string]int{"healthy": 2*round - 1})
			d.push(wh)
			d.want(map[string]int{"healthy": 2 * round})
			if n := d.hangs(); len(n) != round {
				t.Errorf("%d notices after hanging %d times: %v", len(n), round, n)
			} else if n[round-1].Path != "/rings" {
				t.Errorf("the notice is about %q, want the directory", n[round-1].Path)
			}
			release()
			synctest.Wait()
			d.want(map[string]int{"healthy": 2 * round, "stuck": round})
		}
		d.stop()
	})
}

// However many collections leave a loop out, it does the work of none of them
// later.
func TestALoopThatHangsIsNotAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		w, r := d.inMemory()
		d.open("stuck", r)
		release := d.hang()
		d.push(w)
		d.want(nil)
		l := d.loopOf("/rings/stuck")
		l.mail.mu.Lock()
		waiting := len(l.mail.messages)
		l.mail.mu.Unlock()
		for range 100 {
			d.want(nil)
		}
		l.mail.mu.Lock()
		if n := len(l.mail.messages); n != waiting {
			t.Errorf("%d more requests wait for a loop that hangs", n-waiting)
		}
		l.mail.mu.Unlock()
		release()
		synctest.Wait()
		d.want(map[string]int{"stuck": 1})
		d.stop()
	})
}

func TestCollectReturnsWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		w, r := d.inMemory()
		d.open("stuck", r)
		release := d.hang()
		d.push(w)
		ctx, cancel := context.WithTimeout(t.Context(), hungAfter/2)
		defer cancel()
		begun := time.Now()
		if c := d.Collect(ctx, false); len(c.Snapshots) != 0 || time.Since(begun) > hungAfter/2 {
			t.Errorf("after %v: %v", time.Since(begun), c.Snapshots)
		}
		release()
		d.stop()
	})
}

func TestStopLeavesALoopThatHangsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		wh, rh := d.onDisk()
		ws, rs := d.inMemory()
		d.open("healthy", rh)
		d.open("stuck", rs)
		release := d.hang()
		d.push(wh)
		d.push(ws)
		d.want(map[string]int{"healthy": 1})
		err := d.Stop(t.Context())
		if err == nil || !strings.Contains(err.Error(), "/rings") {
			t.Errorf("Stop returns %v, want an error that names the directory", err)
		}
		if !d.isClosed(rh) {
			t.Error("the ring of the healthy agent isn't given up")
		}
		release() // it ends when it can
		synctest.Wait()
		if !d.isClosed(rs) {
			t.Error("the ring isn't given up after it has stopped hanging")
		}
	})
}

func TestStopReturnsWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		w, r := d.inMemory()
		d.open("stuck", r)
		release := d.hang()
		d.push(w)
		ctx, cancel := context.WithTimeout(t.Context(), hungAfter/2)
		defer cancel()
		time.Sleep(hungAfter / 4) // in a bubble of synctest; the loop is at it
		if err := d.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Stop returns %v", err)
		}
		release()
	})
}

func TestNothingStaysOpenAfterStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		_, before := d.onDisk()
		d.open("before", before)
		d.stop()
		_, after := d.inMemory()
		d.open("after", after)
		for name, r := range map[string]*ringbuf.Reader{"before": before, "after": after} {
			if !d.isClosed(r) {
				t.Errorf("the ring that was opened %s Stop is still open", name)
			}
		}
		d.want(nil) // a late collection doesn't wait for anybody
	})
}

func TestAnExitedAgentIsReportedUntilItsEventsAreDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		w, r := d.inMemory()
		d.open("exited", r)
		d.push(w)
		d.Send(Attended{Path: "/rings/exited", Reader: r, Known: true})
		d.collect()
		time.Sleep(time.Hour) // in a bubble of synctest
		d.want(map[string]int{"exited": 1})
		c, _ := d.collect()
		d.Delivered(c)
		time.Sleep(2 * time.Second) // in a bubble of synctest
		d.want(nil)
		if len(d.retired) != 1 {
			t.Errorf("retired are %v", d.retired)
		}
		d.stop()
	})
}

func TestAnAgentWhoseRingMovesToAnotherFileSystemChangesLoops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		_, remote := d.inMemory()
		w, local := d.onDisk()
		d.open("agent", remote)
		before := d.loopOf("/rings/agent")
		d.open("agent", local)
		if d.loopOf("/rings/agent") == before {
			t.Error("the agent is still in the loop of its earlier file system")
		}
		d.push(w)
		d.want(map[string]int{"agent": 1})
		if !d.isClosed(remote) {
			t.Error("the earlier ring is still open")
		}
		d.stop()
	})
}
