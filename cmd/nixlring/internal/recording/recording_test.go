// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package recording_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/recording"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// records reads a recording until an error.
func records(t *testing.T, file []byte) (list []recording.Record, err error) {
	t.Helper()
	r, err := recording.NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		var rec recording.Record
		if err := r.Next(&rec); err != nil {
			return list, err
		}
		rec.Events = append([]ringbuf.Event(nil), rec.Events...)
		list = append(list, rec)
	}
}

// inRing returns the events in a ring.
func inRing(t *testing.T, path string) (events []ringbuf.Event) {
	t.Helper()
	r, err := ringbuf.OpenReader(path, ringbuf.Observe)
	must.OK(t, err)
	defer r.Close()
	_, err = r.Read(0, func(b ringbuf.Batch) {
		for i := range b.Len() {
			events = append(events, b.Event(i))
		}
	})
	must.OK(t, err)
	return events
}

// pollUntil polls until the counts are as expected.
func pollUntil(t *testing.T, rec *recording.Recorder, done func(recording.Stats) bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(rec.Stats()); {
		must.OK(t, rec.Poll(t.Context()))
		if time.Now().After(end) {
			t.Fatalf("%+v after a minute", rec.Stats())
		}
	}
}

func TestReplayOfRealRingsHasTheSameEvents(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	want := map[string][]ringbuf.Event{}
	for _, c := range ringtest.Cases(t) {
		if !c.Readable() || len(c.Pending) == 0 { // nothing is left of an agent that exited with an empty ring
			continue
		}
		name := strings.ReplaceAll(c.Name, "/", " ")
		want[name] = inRing(t, ringtest.CopyTo(t, c, filepath.Join(from, name)))
		if len(want[name]) != len(c.Pending) {
			t.Fatalf("%s: %d events", name, len(want[name]))
		}
	}
	must.OK(t, os.WriteFile(filepath.Join(from, "letter"), []byte("Dear Sir"), 0o600))
	var file bytes.Buffer
	rec, err := recording.NewRecorder(recording.RecorderConfig{Dir: from, Out: &file})
	must.OK(t, err)
	pollUntil(t, rec, func(s recording.Stats) bool { return s.Rings >= len(want) })
	must.OK(t, rec.Close())
	if s := rec.Stats(); s.Rings != len(want) || s.Missed != 0 || s.Bytes != int64(file.Len()) {
		t.Errorf("%+v", s)
	}

	player := play(t, file.Bytes(), to, 1)
	for name, events := range want {
		if diff := cmp.Diff(events, inRing(t, filepath.Join(to, name))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if p := player.Played(); p.Rings != len(want) || p.Dropped != 0 || p.Missed != 0 {
		t.Errorf("%+v", p)
	}
	must.OK(t, player.Remove())
	if left, err := os.ReadDir(to); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func play(t *testing.T, file []byte, dir string, speed float64) *recording.Player {
	t.Helper()
	return playAt(t, file, dir, speed, nil)
}

func playAt(t *testing.T, file []byte, dir string, speed float64, now func() time.Time) *recording.Player {
	t.Helper()
	r, err := recording.NewReader(bytes.NewReader(file))
	must.OK(t, err)
	defer r.Close()
	p, err := recording.NewPlayer(r, recording.PlayerConfig{Dir: dir, Speed: speed, Now: now})
	must.OK(t, err)
	must.OK(t, p.Run(t.Context()))
	must.OK(t, p.Close())
	return p
}

// keeper consumes the rings of a directory and stores the totals of each agent. It only
// runs when it is polled, so that a test determines the order of consumer and agents.
type keeper struct {
	t     *testing.T
	dir   string
	shape *tally.Shape
	rings map[string]*kept
}

// kept is one agent's totals, and its ring while that is open.
type kept struct {
	*tally.Agent
	ring *ringbuf.Reader
}

func newKeeper(t *testing.T, dir string) *keeper {
	t.Helper()
	shape, err := tally.NewShape(tally.Config{})
	must.OK(t, err)
	k := &keeper{t: t, dir: dir, shape: shape, rings: map[string]*kept{}}
	t.Cleanup(func() {
		for _, r := range k.rings {
			if r.ring != nil {
				must.OK(t, r.ring.Close())
			}
		}
	})
	return k
}

// poll discovers and drains the rings.
func (k *keeper) poll() {
	must.OK(k.t, filepath.WalkDir(k.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || k.rings[path] != nil {
			return err
		}
		k.rings[path] = &kept{Agent: tally.NewAgent(k.shape)}
		return nil
	}))
	for path, r := range k.rings {
		// A later poll opens rings that aren't ready and rings of restarted agents.
		if err := r.drain(path); err != nil && !errors.Is(err, ringbuf.ErrNotReady) && !errors.Is(err, ringbuf.ErrInvalid) {
			k.t.Error(err)
		}
	}
}

// drain counts and commits the pending events. It opens the ring if necessary, and closes it
// if the agent has restarted.
func (k *kept) drain(path string) (err error) {
	if k.ring == nil {
		if k.ring, err = ringbuf.OpenReader(path, ringbuf.Consume); err != nil {
			return err
		}
	}
	_, err = k.ring.Read(0, k.Add)
	if err == nil {
		err = k.ring.Commit()
	}
	if errors.Is(err, ringbuf.ErrRestarted) {
		k.Restarted(false)
		err, k.ring = k.ring.Close(), nil
	}
	return err
}

// finish drains the rings completely. If the first poll finds that an agent has restarted,
// the second one opens its ring again.
func (k *keeper) finish() {
	k.poll()
	k.poll()
}

// totals returns the encoded totals of each agent.
func (k *keeper) totals() map[string]string {
	all := map[string]string{}
	for path, r := range k.rings {
		name, err := filepath.Rel(k.dir, path)
		must.OK(k.t, err)
		all[name] = string(r.AppendTotals(nil))
	}
	return all
}

// live runs simulated agents of all layouts, which restart periodically, with a consumer
// and a recorder.
func live(t *testing.T) (file []byte, k *keeper, stats recording.Stats, report simulate.Report) {
	t.Helper()
	dir := t.TempDir()
	must.OK(t, os.Mkdir(filepath.Join(dir, "team"), 0o755))
	var elapsed atomic.Int64 // the recorder also reads it on the engine's goroutine
	clock := func() time.Time { return time.UnixMicro(1_736_951_425_000_000).Add(time.Duration(elapsed.Load())) }
	fleet, err := simulate.NewFleet(simulate.FleetConfig{
		Dir: dir, Agents: 5, Prefix: "team/sim", Layouts: ringbuf.Layouts(), Capacity: 1024,
		Agent: simulate.Config{Rate: 300, Duration: 4 * time.Second, RestartEvery: 1200 * time.Millisecond, Seed: 3, Now: clock},
	})
	must.OK(t, err)
	var out bytes.Buffer
	rec, err := recording.NewRecorder(recording.RecorderConfig{Dir: dir, Include: []string{"**/*"}, Out: &out, Now: clock})
	must.OK(t, err)
	k = newKeeper(t, dir)
	must.OK(t, fleet.Start())
	step := func() {
		t.Helper()
		must.OK(t, rec.Poll(t.Context())) // detects restarts
		// It opens the rings of restarted agents shortly after.
		pollUntil(t, rec, func(s recording.Stats) bool { return int(s.Opened) >= fleet.Report().Sum.Starts })
		k.poll()
		elapsed.Add(int64(50 * time.Millisecond))
	}
	for !fleet.Done() {
		step()
		step()
		must.OK(t, fleet.Interval())
	}
	step()
	must.OK(t, fleet.Stop())
	step()
	must.OK(t, rec.Close())
	k.finish()
	return out.Bytes(), k, rec.Stats(), fleet.Report()
}

func TestReplayHasTheTotalsOfTheLiveRun(t *testing.T) {
	file, lived, stats, report := live(t)
	if stats.Events != report.Sum.Written.Events.Events || stats.Missed != 0 || stats.Rings != 5 || int(stats.Opened) != report.Sum.Starts {
		t.Errorf("recorded %+v, written %d events in %d starts", stats, report.Sum.Written.Events.Events, report.Sum.Starts)
	}
	if perEvent := float64(len(file)) / float64(stats.Events); perEvent > 6 {
		t.Errorf("%.1f bytes per event", perEvent)
	}
	for name, speed := range map[string]float64{"original speed": 1, "fast": 1e6, "slow": 0.25} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			k := newKeeper(t, dir)
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				last := start
				p := playAt(t, file, dir, speed, func() time.Time {
					now := time.Now()
					if now.Sub(last) >= 20*time.Millisecond { // the consumer
						k.poll()
						last = now
					}
					return now
				})
				took := time.Since(start)
				k.finish()
				if got := p.Played(); got.Written != stats.Events || got.Dropped != 0 || got.Starts != stats.Opened {
					t.Errorf("%+v", got)
				}
				if wait := 4 * time.Second.Seconds() / speed; took.Seconds() < wait || took.Seconds() > wait+10 {
					t.Errorf("it took %v", took)
				}
			})
			if diff := cmp.Diff(lived.totals(), k.totals()); diff != "" {
				t.Error("totals of the live run (-) and the replay (+) differ:", diff)
			}
		})
	}
}

func TestReplayWithoutAReaderDropsEvents(t *testing.T) {
	file, _, stats, _ := live(t)
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		p := play(t, file, dir, 1).Played()
		if p.Dropped == 0 || p.Written+p.Dropped != stats.Events || p.Starts != stats.Opened {
			t.Errorf("%+v of %+v", p, stats)
		}
	})
}

func TestReplayStopsWhenTheContextIsDone(t *testing.T) {
	file, _, _, _ := live(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		r, err := recording.NewReader(bytes.NewReader(file))
		must.OK(t, err)
		defer r.Close()
		p, err := recording.NewPlayer(r, recording.PlayerConfig{Dir: t.TempDir()})
		must.OK(t, err)
		if err := p.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		must.OK(t, p.Close())
		if at := p.Played().At; at > 2*time.Second || at < time.Second {
			t.Errorf("the replay stopped at %v", at)
		}
	})
}

// A crash of the recorder leaves a truncated recording.
func TestTruncatedRecordingIsReadUpToTheLastFrame(t *testing.T) {
	file, _, _, _ := live(t)
	all, err := records(t, file)
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	most := 0
	for n := 0; n < len(file); n += 1999 {
		some, err := records(t, file[:n])
		switch {
		case n < 8 && errors.Is(err, recording.ErrFormat):
		case n >= 8 && errors.Is(err, recording.ErrTruncated):
		default:
			t.Fatalf("%d bytes: %v", n, err)
		}
		if len(some) < most {
			t.Fatalf("%d bytes have %d records, fewer than a shorter file", n, len(some))
		}
		most = len(some)
		if most > 0 && !reflect.DeepEqual(all[:most], some) { // go-cmp takes minutes for so many events
			t.Fatalf("%d bytes have different records", n)
		}
	}
	// Frames are written every second, so at most the last second is lost.
	if last := all[most-1].At; last < all[len(all)-1].At-2*time.Second {
		t.Errorf("the last record is at %v of %v", last, all[len(all)-1].At)
	}
}

func TestDamagedRecordingIsRejected(t *testing.T) {
	file, _, _, _ := live(t)
	for n := 0; n < len(file); n += 701 {
		bad := bytes.Clone(file)
		bad[n] ^= 0x10
		some, err := records(t, bad)
		switch {
		case n < 7 && errors.Is(err, recording.ErrFormat):
		case n == 7 && errors.Is(err, recording.ErrVersion):
		case errors.Is(err, recording.ErrDamaged), errors.Is(err, recording.ErrTruncated): // a length may exceed the file
		default:
			t.Fatalf("byte %d: %v after %d records", n, err, len(some))
		}
	}
}

func TestOtherFilesAreRejected(t *testing.T) {
	for text, want := range map[string]error{
		"":                  recording.ErrFormat,
		"NIXL":              recording.ErrFormat,
		"Dear Sir or Madam": recording.ErrFormat,
		"NIXLREC\x02abc":    recording.ErrVersion,
		"NIXLREC\x01":       recording.ErrTruncated,
		"NIXLREC\x01\x00\x00\x00\x00\x00\x00\x00\x00": recording.ErrDamaged,
		"NIXLREC\x01\xff\xff\xff\xff\x00\x00\x00\x00": recording.ErrDamaged,
	} {
		if _, err := records(t, []byte(text)); !errors.Is(err, want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// full is a disk with a limited capacity.
type full struct{ room int }

func (f *full) Write(b []byte) (int, error) {
	n := min(len(b), f.room)
	f.room -= n
	if n < len(b) {
		return n, errors.New("no space left on device")
	}
	return n, nil
}

func TestFullDiskIsAnError(t *testing.T) {
	dir := t.TempDir()
	for room := range 200 {
		w, err := ringbuf.Create(filepath.Join(dir, "agent"), ringbuf.V4, 8)
		must.OK(t, err)
		must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, 1)))
		rec, err := recording.NewRecorder(recording.RecorderConfig{Dir: dir, Out: &full{room}})
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

func TestMissedEventsAndEndsAreRecorded(t *testing.T) {
	var out bytes.Buffer
	start := time.UnixMicro(1_736_951_425_000_000)
	w, err := recording.NewWriter(&out, start, "/tmp")
	must.OK(t, err)
	must.OK(t, w.Open(start, 0, "agent", ringbuf.V4, 8))
	must.OK(t, w.Missed(start, 0, "lapped"))
	must.OK(t, w.Ended(start, 0, "restarted"))
	must.OK(t, w.Close(start))
	list, err := records(t, out.Bytes())
	want := []recording.Record{
		{Op: recording.OpBegin, Start: start, Directory: "/tmp"},
		{Op: recording.OpOpen, Name: "agent", Layout: ringbuf.V4, Capacity: 8},
		{Op: recording.OpMissed, Name: "agent", Layout: ringbuf.V4, Why: "lapped"},
		{Op: recording.OpEnded, Name: "agent", Layout: ringbuf.V4, Why: "restarted"},
		{Op: recording.OpEnd},
	}
	if diff := cmp.Diff(want, list); diff != "" || !errors.Is(err, io.EOF) {
		t.Errorf("%v, %s", err, diff)
	}
}

func TestNamesOutsideOfTheDirectoryAreRejected(t *testing.T) {
	for _, name := range []string{"../agent", "/etc/agent", ".", "", "a\x00b", "a/../../b"} {
		var out bytes.Buffer
		start := time.Now()
		w, err := recording.NewWriter(&out, start, "x")
		must.OK(t, err)
		must.OK(t, w.Open(start, 0, name, ringbuf.V4, 8))
		must.OK(t, w.Close(start))
		if _, err := records(t, out.Bytes()); !errors.Is(err, recording.ErrDamaged) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestFileConsistsOfMagicAndFrames(t *testing.T) {
	var out bytes.Buffer
	start := time.UnixMicro(1_736_951_425_123_456)
	w, err := recording.NewWriter(&out, start, "/tmp")
	must.OK(t, err)
	must.OK(t, w.Close(start.Add(time.Second)))
	b := out.Bytes()
	if string(b[:8]) != "NIXLREC\x01" {
		t.Errorf("the file starts with %q", b[:8])
	}
	frames := 0
	for at := 8; at < len(b); frames++ {
		at += 8 + int(binary.LittleEndian.Uint32(b[at:]))
		if at > len(b) {
			t.Fatalf("frame %d ends at %d of %d", frames, at, len(b))
		}
	}
	if frames != 2 {
		t.Errorf("%d frames", frames)
	}
	list, err := records(t, b)
	want := []recording.Record{
		{Op: recording.OpBegin, Start: start, Directory: "/tmp"},
		{Op: recording.OpEnd, At: time.Second},
	}
	if diff := cmp.Diff(want, list); diff != "" || !errors.Is(err, io.EOF) {
		t.Errorf("%v, %s", err, diff)
	}
}
