//go:build linux && (amd64 || arm64)

package watch

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A round over idle rings, in turn with one atomic load from as many pages:
// what no reader of so many rings could do without. kB/ring is what an idle
// ring takes of the process's own memory; its mapping comes on top.
func BenchmarkIdleRound(b *testing.B) {
	eachCrowd(b, func(b *testing.B, n int) {
		before := resident(b)
		w := idleCrowd(b, n)
		grown := resident(b) - before
		pages := make([]uint64, n*pageWords)
		for at := range pages {
			pages[at] = 1 // or all would be the one page of zeros
		}
		var sum uint64
		took, reference := inTurns(b, n, func() { w.Drain() }, func() {
			for at := 0; at < len(pages); at += pageWords {
				sum += atomic.LoadUint64(&pages[at])
			}
		})
		b.ReportMetric(took, "ns/ring")
		b.ReportMetric(reference, "load-ns/ring")
		b.ReportMetric(took/reference, "x-load")
		b.ReportMetric(float64(grown)/1e3/float64(n), "kB/ring")
		b.ReportMetric(0, "ns/op")
		if sum == 0 {
			b.Error("no page was loaded")
		}
	})
}

// A round over rings of which each has a few transfers, which another process
// has written: they come from its cache, as in life.
func BenchmarkBusyRound(b *testing.B) {
	eachCrowd(b, func(b *testing.B, n int) {
		w, write := busyCrowd(b, n)
		var took []time.Duration
		for b.Loop() {
			write()
			start := time.Now()
			w.Drain()
			took = append(took, time.Since(start))
		}
		ring := median(took) / float64(n)
		b.ReportMetric(ring, "ns/ring")
		b.ReportMetric(ring/busyEvents, "ns/event")
		b.ReportMetric(0, "ns/op")
	})
}

func eachCrowd(b *testing.B, run func(b *testing.B, n int)) {
	b.Helper()
	for _, n := range []int{1, 10, 100, 1000, 10000} {
		b.Run(fmt.Sprintf("rings=%d", n), func(b *testing.B) { run(b, n) })
	}
}

const pageWords = 4096 / 8

// idleCrowd is a watcher of n rings, which it has open, and whose agents are
// gone.
func idleCrowd(b *testing.B, n int) *Watcher {
	b.Helper()
	dir := crowdDir(b, n)
	agents, err := makeRings(dir, n)
	if err != nil {
		b.Fatal(err)
	}
	for _, a := range agents {
		if err := a.Close(); err != nil {
			b.Fatal(err)
		}
	}
	return watchCrowd(b, dir, n)
}

// busyCrowd is a watcher of n rings, and what makes their agents write, in
// another process, and waits until they have.
func busyCrowd(b *testing.B, n int) (w *Watcher, write func()) {
	b.Helper()
	dir := crowdDir(b, n)
	write = startAgents(b, dir, n)
	return watchCrowd(b, dir, n), write
}

// crowdDir is an empty directory for n rings, in memory where that can be had.
func crowdDir(b *testing.B, n int) string {
	b.Helper()
	files := n + 100
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < uint64(files) {
		b.Skipf("%d open files are too few (%v): ulimit -n %d", limit.Cur, err, files)
	}
	dir, err := os.MkdirTemp("/dev/shm", "bench-") //nolint:usetesting // memory, not a disk
	if err != nil {
		dir = b.TempDir()
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) }) // what is left is in memory only
	return dir
}

func watchCrowd(b *testing.B, dir string, n int) *Watcher {
	b.Helper()
	w, err := New(Config{Directories: []string{dir}, MaxRings: n})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(w.Close)
	w.Scan()
	if opened := len(*w.rings.Load()); opened != n {
		b.Fatalf("%d of %d rings are open", opened, n)
	}
	w.Drain() // touches each page once
	return w
}

// resident is the memory of this process alone, in bytes.
func resident(b *testing.B) int64 {
	b.Helper()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "RssAnon:")
	kB, _, _ := strings.Cut(strings.TrimSpace(after), " ")
	n, err := strconv.ParseInt(kB, 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return n * 1024
}

// inTurns runs both by turns, each as often as it takes to last for a while,
// and returns the median ns for each of n.
func inTurns(b *testing.B, n int, work, reference func()) (worked, referred float64) {
	b.Helper()
	var ws, rs []time.Duration
	batch := max(1, 1000/n)
	for b.Loop() {
		start := time.Now()
		for range batch {
			work()
		}
		between := time.Now()
		for range batch {
			reference()
		}
		ws = append(ws, between.Sub(start))
		rs = append(rs, time.Since(between))
	}
	per := float64(n * batch)
	return median(ws) / per, median(rs) / per
}

func median(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/2])
}
