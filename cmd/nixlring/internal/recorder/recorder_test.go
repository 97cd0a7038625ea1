// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package recorder_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/recorder"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/recording"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// records reads a recording until an error.
func records(t *testing.T, file []byte) (list []recording.Record, err error) {
	t.Helper()
	r, err := recorder.Read(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		var rec recording.Record
		if err := r.Next(&rec); err != nil {
			return list, err
		}
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
func pollUntil(t *testing.T, rec *recorder.Recorder, done func(recorder.Stats) bool) {
	t.Helper()
	must.Eventually(t, func() string {
		if done(rec.Stats()) {
			return ""
		}
		must.OK(t, rec.Poll(t.Context()))
		return fmt.Sprintf("%+v", rec.Stats())
	})
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
	rec, err := recorder.NewRecorder(recorder.RecorderConfig{Dir: from, Out: &file})
	must.OK(t, err)
	pollUntil(t, rec, func(s recorder.Stats) bool { return s.Rings >= len(want) })
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

func play(t *testing.T, file []byte, dir string, speed float64) *recorder.Player {
	t.Helper()
	return playAt(t, file, dir, speed, nil)
}

func playAt(t *testing.T, file []byte, dir string, speed float64, now func() time.Time) *recorder.Player {
	t.Helper()
	r, err := recorder.Read(bytes.NewReader(file))
	must.OK(t, err)
	defer r.Close()
	p, err := recorder.NewPlayer(r, recorder.PlayerConfig{Dir: dir, Speed: speed, Now: now})
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
		k.Restarted()
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
func live(t *testing.T) (file []byte, k *keeper, stats recorder.Stats, report simulate.Report) {
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
	rec, err := recorder.NewRecorder(recorder.RecorderConfig{Dir: dir, Include: []string{"**/*"}, Out: &out, Now: clock})
	must.OK(t, err)
	k = newKeeper(t, dir)
	must.OK(t, fleet.Start())
	step := func() {
		t.Helper()
		must.OK(t, rec.Poll(t.Context())) // detects restarts
		// It opens the rings of restarted agents shortly after.
		pollUntil(t, rec, func(s recorder.Stats) bool { return int(s.Opened) >= fleet.Report().Sum.Starts })
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
	if stats.Events != report.Sum.Written || stats.Missed != 0 || stats.Rings != 5 || int(stats.Opened) != report.Sum.Starts {
		t.Errorf("recorded %+v, written %d events in %d starts", stats, report.Sum.Written, report.Sum.Starts)
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
		r, err := recorder.Read(bytes.NewReader(file))
		must.OK(t, err)
		defer r.Close()
		p, err := recorder.NewPlayer(r, recorder.PlayerConfig{Dir: t.TempDir()})
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
func TestTruncatedRecordingIsReadUpToItsLastSecond(t *testing.T) {
	file, _, _, _ := live(t)
	all, err := records(t, file)
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	most := 0
	for n := 0; n < len(file); n += 4999 {
		some, err := records(t, file[:n])
		switch {
		case n == 0 && errors.Is(err, recording.ErrFormat):
		case n > 0 && errors.Is(err, recording.ErrTruncated):
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
	// The file is flushed every second, so at most the last second is lost.
	if last := all[most-1].At; last.Before(all[len(all)-1].At.Add(-2 * time.Second)) {
		t.Errorf("the last record is at %v, and that of the whole file at %v", last, all[len(all)-1].At)
	}
}

func TestDamagedRecordingIsRejected(t *testing.T) {
	file, _, _, _ := live(t)
	all, err := records(t, file)
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	for n := 0; n < len(file); n += 3001 {
		bad := bytes.Clone(file)
		bad[n] ^= 0x10
		some, err := records(t, bad)
		switch {
		case n < 8 && errors.Is(err, recording.ErrFormat):
		case errors.Is(err, recording.ErrDamaged), errors.Is(err, recording.ErrTruncated): // a length may exceed the file
		case errors.Is(err, io.EOF) && reflect.DeepEqual(all, some): // a bit that doesn't matter
		default:
			t.Fatalf("byte %d: %v after %d records", n, err, len(some))
		}
	}
}

func TestOtherFilesAreRejected(t *testing.T) {
	huge, err := zstd.NewWriter(nil, zstd.WithWindowSize(64<<20))
	must.OK(t, err)
	var far bytes.Buffer
	huge.Reset(&far)
	_, err = io.Copy(huge, io.LimitReader(zeros{}, 65<<20))
	must.OK(t, errors.Join(err, huge.Close()))
	for name, c := range map[string]struct {
		content []byte
		want    error
	}{
		"empty":       {nil, recording.ErrFormat},
		"text":        {[]byte("Dear Sir or Madam"), recording.ErrFormat},
		"JSON":        {[]byte(`{"format":"nixl-recording","version":1}` + "\n"), recording.ErrFormat},
		"short":       {[]byte("NIXL"), recording.ErrFormat},
		"bomb":        {bomb(t), recording.ErrDamaged},
		"more memory": {far.Bytes(), recording.ErrDamaged},
	} {
		if _, err := records(t, c.content); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// zeros is an endless file.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// bomb returns a small file that decompresses to 1 GiB.
func bomb(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out)
	must.OK(t, err)
	_, err = io.Copy(z, io.LimitReader(zeros{}, 1<<30))
	must.OK(t, errors.Join(err, z.Close()))
	return out.Bytes()
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
	for room := 0; room < 1000; room += 5 {
		w, err := ringbuf.Create(filepath.Join(dir, "agent"), ringbuf.V4, 8)
		must.OK(t, err)
		must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, 1)))
		rec, err := recorder.NewRecorder(recorder.RecorderConfig{Dir: dir, Out: &full{room}})
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

func TestAgentsOfTheSameNameGetTheirOwnRings(t *testing.T) {
	const opened = `{"agent":%d,"state":"opened","layout":"v4","capacity":8,"name":"team/a"}` + "\n"
	const event = `{"agent":%d,"event_name":"agent_tx_bytes","value":%[1]d}` + "\n"
	text := `{"format":"nixl-recording","version":1,"start":"2025-01-15T14:30:25Z"}` + "\n"
	for n := range 3 {
		text += fmt.Sprintf(opened, n) + fmt.Sprintf(event, n)
	}
	var file bytes.Buffer
	z, err := zstd.NewWriter(&file)
	must.OK(t, err)
	_, err = io.WriteString(z, text)
	must.OK(t, errors.Join(err, z.Close()))
	names, err := recorder.Rings(bytes.NewReader(file.Bytes()))
	if diff := cmp.Diff([]string{"team/a", "team/a~2", "team/a~3"}, names); diff != "" || err != nil {
		t.Fatal(err, diff)
	}
	dir := t.TempDir()
	play(t, file.Bytes(), dir, 1)
	for n, name := range names {
		want := []ringbuf.Event{ringbuf.NewEvent(ringbuf.TypeTxBytes, uint64(n))}
		if diff := cmp.Diff(want, inRing(t, filepath.Join(dir, name))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
