//go:build linux && (amd64 || arm64)

package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// becomes makes a file a ring, in place, as an agent that starts on it does.
func becomes(t *testing.T, x *world, name string) {
	t.Helper()
	if err := x.ring(name, ringbuf.V4, 16).Close(); err != nil {
		t.Fatal(err)
	}
}

func known(w *Watcher) (n int) {
	w.Agents(func(View) { n++ })
	return n
}

// A file that is written to all day costs less and less, whatever is wrong with
// it. As soon as it has been left alone for a while, a change is seen at once.
func TestBusyFileIsLookedAtLessAndLess(t *testing.T) {
	for name, content := range map[string]string{
		"no ring": strings.Repeat("a line of a log\n", 10),
		"empty":   "",
		"invalid": string(append(make([]byte, 16), append([]byte{4, 0, 0, 0}, make([]byte, 100)...)...)),
	} {
		t.Run(name, func(t *testing.T) {
			x, opened := newWorld(t), 0
			path := filepath.Join(x.dir, "app.log")
			touch(t, path, content)
			before := openFolder
			openFolder = func(dir, name string) (*ringbuf.Folder, error) {
				opened++
				return before(dir, name)
			}
			t.Cleanup(func() { openFolder = before })
			w := x.watcher(nil)
			w.changed(path, false)
			if opened != 1 {
				t.Fatalf("the first change is seen by %d looks", opened)
			}
			const writes = 100_000 // in 100 seconds
			for range writes {
				x.pass(time.Millisecond)
				w.changed(path, false)
				if w.untilRetry() <= minDrainInterval {
					w.retry()
				}
			}
			if opened > 40 {
				t.Errorf("%d looks at a file that was written to %d times", opened, writes)
			}
			x.pass(time.Hour)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			becomes(t, x, "app.log")
			w.changed(path, false)
			if known(w) != 1 {
				t.Error("after an hour of peace a change isn't seen at once")
			}
		})
	}
}

// A new file is looked at in time though its name was a busy file's.
func TestNewFileWithABusyName(t *testing.T) {
	x := newWorld(t)
	path := filepath.Join(x.dir, "agent")
	touch(t, path, "a log")
	w := x.watcher(nil)
	for range 1000 {
		x.pass(10 * time.Millisecond)
		w.changed(path, false)
		w.retry()
	}
	rename(t, path, path+".1")
	becomes(t, x, "agent")
	w.changed(path, true)
	x.pass(firstGap)
	w.retry()
	if known(w) != 1 {
		t.Error("a new ring waits for what was in its place")
	}
}

// An agent that starts anew sets its file's size. That is seen at once, also
// where somebody touches the file all the time, but not each time.
func TestChangesOfAnOpenRingsFile(t *testing.T) {
	x := newWorld(t)
	ring := x.ring("agent", ringbuf.V4, 64)
	w := x.watcher(nil)
	w.Scan()
	left := func() int {
		n, err := ring.Len()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	push(t, ring, 1)
	if w.changed(ring.Path(), false); left() != 0 {
		t.Error("the first change isn't seen at once")
	}
	push(t, ring, 1)
	if w.changed(ring.Path(), false); left() != 1 {
		t.Error("the second change is seen at once, too")
	}
	if wait := w.untilRetry(); wait > firstGap {
		t.Errorf("the second change is seen after %v", wait)
	}
	x.pass(firstGap)
	if w.retry(); left() != 0 {
		t.Error("the second change isn't seen in time")
	}
	for range 100 {
		x.pass(agentGap)
		w.changed(ring.Path(), false)
		w.retry()
	}
	push(t, ring, 1)
	w.changed(ring.Path(), false)
	x.pass(agentGap)
	if w.retry(); left() != 0 {
		t.Errorf("a change isn't seen within %v", agentGap)
	}
}

func TestCalmFilesAreForgotten(t *testing.T) {
	x := newWorld(t)
	w := x.watcher(nil)
	for i := range 100 {
		w.changed(filepath.Join(x.dir, fmt.Sprint("file-", i)), true)
	}
	w.changed(filepath.Join(x.dir, "..", "elsewhere"), true)
	if len(w.hot) != 100 {
		t.Errorf("%d files are kept in mind", len(w.hot))
	}
	x.pass(time.Minute)
	w.Scan()
	if len(w.hot) != 0 {
		t.Errorf("%d files are kept in mind for ever", len(w.hot))
	}
}

// A flood of events is taken in portions.
func TestFloodIsTakenInPortions(t *testing.T) {
	now, taken := time.Unix(1_800_000_000, 0), 0
	var f flood
	for end := now.Add(time.Second); now.Before(end); taken++ {
		now = now.Add(time.Microsecond + f.more(now))
	}
	if limit := maxVain * int(time.Second/firstGap+1); taken > limit {
		t.Errorf("%d events a second, limit is %d", taken, limit)
	}
	for range 1000 {
		now = now.Add(time.Millisecond)
		if pause := f.more(now); pause > 0 {
			t.Fatalf("a trickle is held up for %v", pause)
		}
	}
}

// Events that are lost time and again don't keep the scan running.
func TestLostEventsBringOneScan(t *testing.T) {
	x := newWorld(t)
	w := x.watcher(nil)
	w.Scan()
	if wait := w.untilRescan(); wait != overflowPause {
		t.Errorf("the next look is after %v", wait)
	}
	x.pass(time.Second)
	if wait := w.untilRescan(); wait != 0 {
		t.Errorf("after a while it is after %v", wait)
	}
}
