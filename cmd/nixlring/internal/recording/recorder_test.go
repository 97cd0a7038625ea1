// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package recording

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorded returns the records of a compressed recording.
func recorded(t *testing.T, file []byte) ([]Record, error) {
	t.Helper()
	r, err := Open(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return all(r)
}

// pollUntil polls until the counts are as expected.
func pollUntil(t *testing.T, rec *Recorder, done func(Stats) bool) {
	t.Helper()
	must.Eventually(t, func() string {
		if done(rec.Stats()) {
			return ""
		}
		must.OK(t, rec.Poll(t.Context()))
		return fmt.Sprintf("%+v", rec.Stats())
	})
}

// play replays a recording.
func play(t *testing.T, file []byte, dir string, speed float64, now func() time.Time) *Player {
	t.Helper()
	r, err := Open(bytes.NewReader(file))
	must.OK(t, err)
	defer r.Close()
	p := &Player{Dir: dir, Speed: speed, Now: now}
	must.OK(t, errors.Join(p.Run(t.Context(), r), p.Close()))
	return p
}

// consumer sums the values of the events that it takes from the rings of a directory.
type consumer struct {
	t       *testing.T
	dir     string
	readers map[string]*ringbuf.Reader
	sums    map[string]uint64 // by ring and name of the event
}

func newConsumer(t *testing.T, dir string) *consumer {
	t.Helper()
	c := &consumer{t, dir, map[string]*ringbuf.Reader{}, map[string]uint64{}}
	t.Cleanup(func() {
		for _, r := range c.readers {
			must.OK(t, r.Close())
		}
	})
	return c
}

func (c *consumer) poll() {
	list, err := os.ReadDir(c.dir)
	must.OK(c.t, err)
	for _, e := range list {
		c.drain(e.Name())
	}
}

func (c *consumer) drain(name string) {
	r := c.readers[name]
	if r == nil {
		opened, err := ringbuf.OpenReader(filepath.Join(c.dir, name), ringbuf.Consume)
		if err != nil {
			return // the next poll opens a ring that isn't ready
		}
		r, c.readers[name] = opened, opened
	}
	_, err := r.Read(0, func(b ringbuf.Batch) {
		for i := range b.Len() {
			e := b.Event(i)
			c.sums[name+" "+e.EventName()] += e.Value
		}
	})
	if err == nil {
		err = r.Commit()
	}
	if errors.Is(err, ringbuf.ErrRestarted) {
		delete(c.readers, name)
		err = r.Close()
	}
	must.OK(c.t, err)
}

// liveRun records five agents of all layouts that restart, for four seconds, and consumes their events.
func liveRun(t *testing.T) (file []byte, sums map[string]uint64, stats Stats) {
	t.Helper()
	dir := t.TempDir()
	var elapsed atomic.Int64 // the recorder also reads it on the engine's goroutine
	clock := func() time.Time { return time.UnixMicro(1_736_951_425_000_000).Add(time.Duration(elapsed.Load())) }
	var out bytes.Buffer
	rec, err := NewRecorder(RecorderConfig{Dir: dir, Out: &out, Now: clock})
	must.OK(t, err)
	c := newConsumer(t, dir)
	rng := rand.New(rand.NewPCG(3, 4))
	agents := make([]*ringbuf.Writer, 5)
	written, starts := uint64(0), uint64(0)
	for step := range 80 {
		for n, w := range agents {
			if (step+3*n)%24 == 0 || w == nil { // also a restart
				if w != nil {
					must.OK(t, w.Close())
				}
				layout := ringbuf.Layouts()[int(starts)%len(ringbuf.Layouts())]
				w, err = ringbuf.Create(filepath.Join(dir, fmt.Sprint("agent-", n)), layout, 256)
				must.OK(t, err)
				agents[n] = w
				starts++
			}
			for range rng.IntN(100) {
				e := ringbuf.NewEvent(ringbuf.Type(rng.IntN(21)), rng.Uint64N(1<<40))
				e.TimestampMicros = uint64(clock().UnixMicro())
				must.OK(t, w.Push(e))
				written++
			}
		}
		pollUntil(t, rec, func(s Stats) bool { return s.Opened >= starts && s.Events >= written })
		c.poll()
		c.poll() // opens the rings of restarted agents
		elapsed.Add(int64(50 * time.Millisecond))
	}
	for _, w := range agents {
		must.OK(t, w.Close())
	}
	must.OK(t, rec.Close())
	if diff := cmp.Diff(Stats{Rings: 5, Opened: starts, Events: written}, rec.Stats()); diff != "" {
		t.Error(diff)
	}
	return out.Bytes(), c.sums, rec.Stats()
}

// written returns a recording of five agents that have 4,000 events in four seconds.
func written(t *testing.T) []byte {
	t.Helper()
	at := time.UnixMicro(1_736_951_425_000_000)
	rng := rand.New(rand.NewPCG(3, 4))
	return fileOf(t, Header{Start: at}, func(w *Writer) {
		for n := range 5 {
			must.OK(t, w.Open(at, n, About{Name: fmt.Sprint("agent-", n)}, ringbuf.V4, 256))
		}
		for range 80 {
			at = at.Add(50 * time.Millisecond)
			for n := range 5 {
				list := make([]ringbuf.Event, 10)
				for i := range list {
					list[i] = ringbuf.NewEvent(ringbuf.Type(rng.IntN(21)), rng.Uint64N(1<<40))
				}
				b, err := ringbuf.MakeBatch(ringbuf.V4, list)
				must.OK(t, errors.Join(err, w.Events(at, n, b)))
			}
		}
	})
}

func TestReplayHasTheEventsOfTheLiveRun(t *testing.T) {
	file, sums, stats := liveRun(t)
	for name, speed := range map[string]float64{"fast": 1e6, "slow": 0.25} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c := newConsumer(t, dir)
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				last := start
				p := play(t, file, dir, speed, func() time.Time {
					now := time.Now()
					if now.Sub(last) >= 20*time.Millisecond {
						c.poll()
						last = now
					}
					return now
				})
				c.poll()
				c.poll()
				want := Played{Rings: 5, Starts: stats.Opened, Written: stats.Events, Seconds: 4}
				if diff := cmp.Diff(want, p.Played); diff != "" {
					t.Error(diff)
				}
				if took, wait := time.Since(start).Seconds(), 4/speed; took < wait || took > wait+10 {
					t.Errorf("it took %v s", took)
				}
			})
			if diff := cmp.Diff(sums, c.sums); diff != "" {
				t.Error("sums of the live run (-) and the replay (+) differ:", diff)
			}
		})
	}
}

// A reader may start late, or stop.
func TestReplayContinuesWhenARingIsReadAgain(t *testing.T) {
	events := make([]ringbuf.Event, 7)
	file := fileOf(t, Header{Start: start}, func(w *Writer) {
		must.OK(t, w.Open(start, 0, About{Name: "a"}, ringbuf.V4, 8))
		for second := range 13 { // of 13 events, 5 find a full ring without a reader, and 7 fit into the ring again
			for i := range events {
				events[i] = ringbuf.NewEvent(ringbuf.TypeTxBytes, uint64(second))
			}
			b, err := ringbuf.MakeBatch(ringbuf.V4, events)
			must.OK(t, errors.Join(err, w.Events(start.Add(time.Duration(second)*time.Second), 0, b)))
			events = events[:1]
		}
	})
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		begin, c, polled := time.Now(), newConsumer(t, dir), false
		p := play(t, file, dir, 1, func() time.Time {
			if !polled && time.Since(begin) >= 5500*time.Millisecond {
				c.poll()
				polled = true
			}
			return time.Now()
		}).Played
		if diff := cmp.Diff(Played{Rings: 1, Starts: 1, Written: 14, Dropped: 5, Seconds: 12}, p); diff != "" || time.Since(begin) != 12*time.Second {
			t.Errorf("after %v: %s", time.Since(begin), diff)
		}
	})
}

// A ring that was read may be read again, unless nobody has ever read one.
func TestReplayWaitsForReadersUpToASecond(t *testing.T) {
	file := fileOf(t, Header{Start: start}, func(w *Writer) {
		for n := range 3 {
			must.OK(t, w.Open(start, n, About{Name: fmt.Sprint(n)}, ringbuf.V4, 8))
		}
		for second, events := range [][]ringbuf.Event{make([]ringbuf.Event, 7), make([]ringbuf.Event, 1)} { // a ring is full, and then one more
			for n := range 3 {
				b, err := ringbuf.MakeBatch(ringbuf.V4, events)
				must.OK(t, errors.Join(err, w.Events(start.Add(time.Duration(second)*time.Second), n, b)))
			}
		}
	})
	for name, tt := range map[string]struct {
		reads   map[string]time.Duration // of rings
		written uint64
		took    time.Duration
		stop    time.Duration
	}{
		"no reader":        {nil, 21, 2 * time.Second, time.Hour},
		"readers of two":   {map[string]time.Duration{"0": 1500 * time.Millisecond, "2": 3 * time.Second}, 23, 3005 * time.Millisecond, time.Hour},
		"it is terminated": {nil, 21, 1200 * time.Millisecond, 1200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.stop)
				defer cancel()
				r, err := Open(bytes.NewReader(file))
				must.OK(t, err)
				defer r.Close()
				begin, c := time.Now(), newConsumer(t, dir)
				p := &Player{Dir: dir, Speed: 1, Now: func() time.Time {
					for ring, at := range tt.reads {
						if time.Since(begin) == at {
							c.drain(ring)
						}
					}
					return time.Now()
				}}
				err = errors.Join(p.Run(ctx, r), p.Close())
				if took := time.Since(begin); took != tt.took || p.Played.Written != tt.written || errors.Is(err, context.DeadlineExceeded) != (tt.took == tt.stop) {
					t.Errorf("after %v: %+v, %v", took, p.Played, err)
				}
			})
		})
	}
}

// A recorder that crashes loses at most its last second. Whatever happens to a file, its reader doesn't invent records.
func TestTruncatedAndDamagedRecordingsAreReadAsFarAsTheyAreValid(t *testing.T) {
	file := written(t)
	whole, err := recorded(t, file)
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	most := 0
	for n := 0; n < len(file); n += 997 {
		some, err := recorded(t, file[:n])
		if want := map[bool]error{true: ErrFormat, false: ErrTruncated}[n == 0]; !errors.Is(err, want) {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if len(some) < most || len(some) > 0 && !reflect.DeepEqual(whole[:len(some)], some) { // go-cmp takes minutes for so many events
			t.Fatalf("%d bytes have other records", n)
		}
		most = len(some)
	}
	if last := whole[most-1].At; last.Before(whole[len(whole)-1].At.Add(-2 * time.Second)) {
		t.Errorf("the last record is at %v, and that of the whole file at %v", last, whole[len(whole)-1].At)
	}
	for n := 0; n < len(file); n += 601 {
		bad := bytes.Clone(file)
		bad[n] ^= 0x10
		some, err := recorded(t, bad)
		switch {
		case n < 8 && errors.Is(err, ErrFormat):
		case errors.Is(err, ErrDamaged), errors.Is(err, ErrTruncated): // a length may exceed the file
		case errors.Is(err, io.EOF) && reflect.DeepEqual(whole, some): // a bit that doesn't matter
		default:
			t.Fatalf("byte %d: %v after %d records", n, err, len(some))
		}
	}
}

func TestOnlyRecordingsAreRead(t *testing.T) {
	file := written(t)
	text := func(s string) []byte { return compressed(t, strings.NewReader(s+"\n"), 1<<20) }
	dir := t.TempDir()
	for name, tt := range map[string]struct {
		content []byte
		want    error
		is      bool
	}{
		"recording":   {file, io.EOF, true},
		"newer":       {text(`{"format":"nixl-recording","version":2}`), ErrVersion, true},
		"empty":       {nil, ErrFormat, false},
		"text":        {[]byte("Dear Sir or Madam"), ErrFormat, false},
		"JSON":        {[]byte(`{"format":"nixl-recording","version":1}` + "\n"), ErrFormat, false},
		"compressed":  {text("Dear Sir"), ErrFormat, false},
		"long line":   {compressed(t, zeros(64<<20), 1<<20), ErrDamaged, false},
		"more memory": {compressed(t, zeros(65<<20), 64<<20), ErrDamaged, false},
	} {
		path := filepath.Join(dir, name)
		must.OK(t, os.WriteFile(path, tt.content, 0o600))
		if _, err := recorded(t, tt.content); !errors.Is(err, tt.want) || Is(path) != tt.is {
			t.Errorf("%s: %v, a recording: %v", name, err, Is(path))
		}
	}
	if Is(dir) || Is(filepath.Join(dir, "none")) {
		t.Error("a directory or nothing is a recording")
	}
}

// compressed compresses content.
func compressed(t *testing.T, content io.Reader, window int) []byte {
	t.Helper()
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out, zstd.WithWindowSize(window))
	must.OK(t, err)
	_, err = io.Copy(z, content)
	must.OK(t, errors.Join(err, z.Close()))
	return out.Bytes()
}

func zeros(n int64) io.Reader { return io.LimitReader(zero{}, n) }

type zero struct{}

func (zero) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// fullDisk is a file on a disk that is full after some bytes.
type fullDisk struct{ room int }

func (f *fullDisk) Write(b []byte) (int, error) {
	n := min(len(b), f.room)
	f.room -= n
	if n < len(b) {
		return n, errors.New("no space left on device")
	}
	return n, nil
}

func TestRecorderReportsAnInvalidPatternAndAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if _, err := NewRecorder(RecorderConfig{Dir: dir, Include: []string{"["}, Out: io.Discard, Now: time.Now}); err == nil {
		t.Error("an invalid pattern was accepted")
	}
	for room := 0; room < 1000; room += 5 {
		w, err := ringbuf.Create(filepath.Join(dir, "agent"), ringbuf.V4, 8)
		must.OK(t, err)
		must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, 1)))
		rec, err := NewRecorder(RecorderConfig{Dir: dir, Out: &fullDisk{room}, Now: time.Now})
		if err == nil {
			err = errors.Join(rec.Poll(t.Context()), rec.Close())
		}
		must.OK(t, w.Close())
		if err != nil && strings.Contains(err.Error(), "no space left") {
			continue
		}
		if err == nil && room > 60 {
			return
		}
		t.Fatalf("%d bytes: %v", room, err)
	}
	t.Error("the recording never fits")
}

func TestRunRecordsUntilItIsCanceled(t *testing.T) {
	dir := t.TempDir()
	w, err := ringbuf.Create(filepath.Join(dir, "agent"), ringbuf.V4, 8)
	must.OK(t, err)
	defer w.Close()
	var file bytes.Buffer
	rec, err := NewRecorder(RecorderConfig{Dir: dir, Interval: time.Millisecond, Out: &file, Now: time.Now})
	must.OK(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- rec.Run(ctx) }()
	for n := range uint64(3) {
		must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, 1)))
		must.EventuallyTrue(t, "event", func() bool { return rec.Stats().Events == n+1 })
	}
	select {
	case err := <-done:
		t.Fatalf("it ended before: %v", err)
	default:
	}
	cancel()
	must.OK(t, errors.Join(<-done, rec.Close()))
}

// A crash must not lose more than a second.
func TestRecordingIsFlushedEverySecond(t *testing.T) {
	var file bytes.Buffer
	w, err := NewWriter(&file, Header{Start: start})
	must.OK(t, err)
	must.OK(t, w.Open(start, 0, About{Name: "a"}, ringbuf.V4, 8))
	for after, want := range []int{0, 2} { // a ring, and a time
		must.OK(t, w.Tick(start.Add(flushEvery-1+time.Duration(after))))
		if list, err := recorded(t, file.Bytes()); !errors.Is(err, ErrTruncated) || len(list) != want {
			t.Errorf("%d records, want %d: %v", len(list), want, err)
		}
	}
}

func TestAgentsThatCanNotBeCreatedAreNotReplayed(t *testing.T) {
	file := fileOf(t, Header{Start: start}, func(w *Writer) {
		for n := range 2 {
			must.OK(t, w.Open(start, n, About{Name: "a"}, ringbuf.V4, 8))
		}
	})
	for want, p := range map[string]*Player{
		`damaged recording: two agents are named "a"`: {Dir: t.TempDir()},
		"an agent is running":                         {Dir: t.TempDir(), Check: func(string) error { return errors.New("an agent is running") }},
		"invalid argument":                            {Dir: "missing\x00"},
	} {
		r, err := Open(bytes.NewReader(file))
		must.OK(t, err)
		p.Speed, p.Now = 1, time.Now
		if err := errors.Join(p.Run(t.Context(), r), p.Close()); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		r.Close()
	}
}

// Agents with random names must not make a recording that its reader rejects.
func TestRecordingHasNoMoreAgentsThanItsReaderAccepts(t *testing.T) {
	const more = 3
	var file bytes.Buffer
	r := &Recorder{cfg: RecorderConfig{Now: time.Now}, ids: make(map[string]int)}
	var err error
	begin := time.Now()
	r.out, err = NewWriter(&file, Header{Start: begin})
	must.OK(t, err)
	for i := range MaxAgents + more {
		a := engine.Agent{Name: strconv.Itoa(i), Path: "/run/nixl/" + strconv.Itoa(i)}
		r.opened(a, ringbuf.V4, 64)
		r.missed(a, errors.New("gap"))
		r.closed(a, errors.New("exited"))
	}
	must.OK(t, r.out.Close(begin))
	if s := r.Stats(); s.Rings != MaxAgents || s.Omitted != more || s.Missed != MaxAgents+more {
		t.Errorf("%+v", s)
	}
	list, err := recorded(t, file.Bytes())
	if !errors.Is(err, io.EOF) || list[len(list)-1].Agent != MaxAgents-1 {
		t.Errorf("%d records, %v", len(list), err)
	}
}
