// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package recording

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

var start = time.UnixMicro(1_736_951_425_123_456)

// fileOf returns a recording.
func fileOf(t *testing.T, h Header, write func(w *Writer)) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, h)
	must.OK(t, err)
	write(w)
	must.OK(t, w.Close(start))
	return out.Bytes()
}

// content returns the decompressed content of a recording.
func content(t *testing.T, file []byte) string {
	t.Helper()
	z, err := zstd.NewReader(bytes.NewReader(file))
	must.OK(t, err)
	defer z.Close()
	text, err := io.ReadAll(z)
	must.OK(t, err)
	return string(text)
}

// records reads decompressed content until an error.
func records(content string) ([]Record, error) {
	var r Reader
	if err := r.start(strings.NewReader(content)); err != nil {
		return nil, err
	}
	return all(&r)
}

func all(r *Reader) (list []Record, err error) {
	for {
		var rec Record
		if err := r.Next(&rec); err != nil {
			return list, err
		}
		list = append(list, rec)
	}
}

func TestLinesAreAsDocumented(t *testing.T) {
	from := start.Add(999).In(time.FixedZone("", 3600)) // the file has whole microseconds in UTC
	at := func(micros int64) time.Time { return from.Add(time.Duration(micros) * time.Microsecond) }
	about := About{Name: "a", Path: "/run/nixl/a", Attributes: map[string]string{"k8s.pod.name": "prefill-0"}}
	file := fileOf(t, Header{Tool: "nixlring 1.2.3", Host: "gpu-7", Directory: "/run/nixl", Start: from}, func(w *Writer) {
		events := func(micros int64, agent int, l ringbuf.Layout, list ...ringbuf.Event) {
			b, err := ringbuf.MakeBatch(l, list)
			must.OK(t, errors.Join(err, w.Events(at(micros), agent, b)))
		}
		must.OK(t, w.Open(at(1), 0, about, ringbuf.V4, 8))
		events(2, 0, ringbuf.V4, ringbuf.NewEvent(ringbuf.TypeTxBytes, 7), ringbuf.Event{Type: 99, Value: 8}, ringbuf.NewEvent(ringbuf.TypeEventsDropped, 9))
		must.OK(t, w.Open(at(3), 1, About{Name: "old", Path: "/run/nixl/old"}, ringbuf.V1, 16))
		events(4, 1, ringbuf.V1,
			ringbuf.Event{TimestampMicros: 5, Category: ringbuf.CategoryError, Named: true, Name: ringbuf.MakeName("NIXL_ERR_BACKEND"), Value: 1},
			ringbuf.Event{TimestampMicros: 6, Category: 17, Named: true, Name: ringbuf.Name{'x', 0xff}, Value: 1<<64 - 1})
		must.OK(t, w.State(at(3), 1, Missed)) // the clock was set back
		must.OK(t, w.State(at(5), 1, Full))
		must.OK(t, w.State(at(9), 0, Closed))
		must.OK(t, w.Tick(at(999_999)))
		must.OK(t, w.Tick(at(1_000_000))) // nothing happened for a second
		must.OK(t, w.Flush(at(1_000_000)))
	})
	want := `{"format":"nixl-recording","version":1,"tool":"nixlring 1.2.3","host":"gpu-7","directory":"/run/nixl","start":"2025-01-15T14:30:25.123456Z"}
{"time_us":1736951425123457,"agent":0,"state":"opened","layout":"v4","capacity":8,"name":"a","path":"/run/nixl/a","attributes":{"k8s.pod.name":"prefill-0"}}
{"time_us":1736951425123458,"agent":0,"events":[{"category":"transfer","event_name":"agent_tx_bytes","value":7},{"category":"unknown","event_name":"unknown_event_99","value":8},{"category":"telemetry","event_name":"agent_telemetry_events_dropped","value":9}]}
{"time_us":1736951425123459,"agent":1,"state":"opened","layout":"v1","capacity":16,"name":"old","path":"/run/nixl/old"}
{"time_us":1736951425123460,"agent":1,"events":[{"timestamp_us":5,"category":"error","event_name":"NIXL_ERR_BACKEND","value":1},{"timestamp_us":6,"category":"unknown","event_name":"x\\xff","value":18446744073709551615}]}
{"time_us":1736951425123460,"agent":1,"state":"missed"}
{"time_us":1736951425123461,"agent":1,"state":"full"}
{"time_us":1736951425123465,"agent":0,"state":"closed"}
{"time_us":1736951426123456}
`
	if diff := cmp.Diff(want, content(t, file)); diff != "" {
		t.Error(diff)
	}
}

// Names come from agents.
func TestLongTextsAreCut(t *testing.T) {
	list, err := records(content(t, fileOf(t, Header{Start: start}, func(w *Writer) {
		must.OK(t, w.Open(start, 0, About{Name: "a", Path: "x" + strings.Repeat("é", 4096)}, ringbuf.V4, 8))
	})))
	if want := "x" + strings.Repeat("é", 4096/2-1) + "\uFFFD"; !errors.Is(err, io.EOF) || list[0].About.Path != want {
		t.Errorf("%v: %d bytes", err, len(list[0].About.Path))
	}
}

func TestEventsOfEachLayoutAreRestored(t *testing.T) {
	for _, l := range ringbuf.Layouts() {
		t.Run(l.String(), func(t *testing.T) {
			var events, want, got []ringbuf.Event
			for n := range 2*2048 + 1 { // three lines, and JSON escapes most characters
				e := ringbuf.Event{Type: ringbuf.Type(n % 24), Category: ringbuf.Category(n%10 - 1), Value: uint64(n) << 40}
				if l == ringbuf.V1 {
					e = ringbuf.Event{Category: e.Category, Named: true, Name: ringbuf.MakeName(fmt.Sprintf("%d \"<é", n) + strings.Repeat("\x01", 40)), Value: e.Value, TimestampMicros: uint64(n) + 1<<62}
				}
				events = append(events, e)
			}
			b, err := ringbuf.MakeBatch(l, events)
			must.OK(t, err)
			for i := range b.Len() {
				e := b.Event(i)
				if e.Category == ringbuf.Categories { // unknown categories have no names
					e.Category = -1
				}
				want = append(want, e)
			}
			list, err := records(content(t, fileOf(t, Header{Start: start}, func(w *Writer) {
				must.OK(t, w.Open(start, 0, About{Name: "a"}, l, 64))
				must.OK(t, w.Events(start, 0, b))
			})))
			for i := range list {
				got = append(got, list[i].Events...)
			}
			if diff := cmp.Diff(want, got); diff != "" || !errors.Is(err, io.EOF) {
				t.Error(err, diff)
			}
		})
	}
}

const (
	header = `{"format":"nixl-recording","version":1,"tool":"x","start":"2025-01-15T14:30:25.123456Z"}` + "\n"
	opened = `{"time_us":1,"agent":0,"state":"opened","layout":"v2","capacity":8,"name":"a"}` + "\n"
)

func TestInvalidContentIsRejectedWithItsLine(t *testing.T) {
	event := func(text string) string { return header + opened + `{"time_us":1,"agent":0` + text + "}\n" }
	open := func(text string) string { return header + `{"time_us":1,"state":"opened",` + text + "}\n" }
	var many strings.Builder
	for n := range MaxAgents + 1 {
		fmt.Fprintf(&many, `{"time_us":1,"agent":%d,"state":"opened","layout":"v2","capacity":8,"name":"a"}`+"\n", n)
	}
	for name, c := range map[string]struct {
		content string
		is      error
		says    string
	}{
		"other JSON":          {`{"format":"x"}` + "\n", ErrFormat, ""},
		"newer version":       {`{"format":"nixl-recording","version":2,"tool":"nixlring 9","start":5}` + "\n", ErrVersion, `(2, this program reads 1); read it with the release that wrote it: "nixlring 9"`},
		"header":              {`{"format":"nixl-recording","version":1,"start":"yesterday"}` + "\n", ErrDamaged, "line 1"},
		"half a header":       {header[:20], ErrTruncated, "after line 0"},
		"half a line":         {header + opened[:20], ErrTruncated, "after line 1"},
		"no JSON":             {header + "x\n", ErrDamaged, "line 2"},
		"long line":           {header + strings.Repeat("x", 1<<20+1), ErrDamaged, "line 2 has more than"},
		"unknown agent":       {header + `{"agent":0,"events":[]}` + "\n", ErrDamaged, "line 2: agent 0 was not opened"},
		"no agent":            {header + opened + `{"state":"closed"}` + "\n", ErrDamaged, "line 3: agent -1"},
		"unknown state":       {event(`,"state":"x"`), ErrDamaged, `line 3: unknown state "x"`},
		"unknown event":       {event(`,"events":[{"event_name":"x","value":1}]`), ErrDamaged, `no event of layout v2 is named "x"`},
		"unknown layout":      {open(`"agent":0,"layout":"v9"`), ErrDamaged, "unknown layout"},
		"agent out of order":  {open(`"agent":1,"layout":"v2"`), ErrDamaged, "got agent 1, want at most 0"},
		"too many agents":     {header + many.String(), ErrDamaged, "line 8194: got agent 8192, want at most 8191"},
		"negative agent":      {open(`"agent":-1,"layout":"v2"`), ErrDamaged, "got agent -1"},
		"invalid capacity":    {open(`"agent":0,"layout":"v2","name":"a","capacity":7`), ErrDamaged, "invalid capacity 7"},
		"huge capacity":       {open(`"agent":0,"layout":"v2","name":"a","capacity":4611686018427387904`), ErrDamaged, "invalid capacity"},
		"two names":           {header + opened + strings.Replace(opened, `"a"`, `"b"`, 1), ErrDamaged, "two names"},
		"parent directory":    {open(`"agent":0,"layout":"v2","name":"../a","capacity":8`), ErrDamaged, "leads outside"},
		"absolute path":       {open(`"agent":0,"layout":"v2","name":"/a","capacity":8`), ErrDamaged, "leads outside"},
		"no name":             {open(`"agent":0,"layout":"v2","capacity":8`), ErrDamaged, "leads outside"},
		"the directory":       {open(`"agent":0,"layout":"v2","name":".","capacity":8`), ErrDamaged, "leads outside"},
		"name with a NUL":     {open(`"agent":0,"layout":"v2","name":"a\u0000b","capacity":8`), ErrDamaged, "leads outside"},
		"name that goes back": {open(`"agent":0,"layout":"v2","name":"a/../../b","capacity":8`), ErrDamaged, "leads outside"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := records(c.content); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
				t.Error(err)
			}
		})
	}
}

// endless is a recording with a new agent in each line, as a small file could contain.
type endless struct {
	rest string
	n    int
}

var long = strings.Repeat("x", 1<<19)

func (e *endless) Read(b []byte) (int, error) {
	if e.rest == "" {
		e.rest = fmt.Sprintf(`{"agent":%d,"state":"opened","layout":"v2","capacity":8,"name":"a","path":"%s"}`+"\n", e.n, long)
		e.n++
	}
	n := copy(b, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func TestDescriptionsOfAgentsAreBounded(t *testing.T) {
	in := &endless{rest: header}
	var r Reader
	err := r.start(in)
	for err == nil {
		err = r.Next(new(Record))
	}
	if !errors.Is(err, ErrDamaged) || in.n > 200 {
		t.Errorf("%v after %d agents", err, in.n)
	}
}

func FuzzReader(f *testing.F) {
	f.Add(header + opened + `{"time_us":2,"agent":0,"events":[{"category":"transfer","event_name":"agent_tx_bytes","value":7}]}` + "\n")
	f.Add(header + strings.Replace(opened, "v2", "v1", 1) + `{"time_us":2,"agent":0,"events":[{"timestamp_us":1,"category":"error","event_name":"x","value":7}]}` + "\n")
	f.Add(header + opened + `{"time_us":-2,"agent":0,"state":"closed"}` + "\n")
	f.Fuzz(func(t *testing.T, content string) {
		list, err := records(content)
		if !slices.ContainsFunc([]error{io.EOF, ErrFormat, ErrVersion, ErrTruncated, ErrDamaged}, func(e error) bool { return errors.Is(err, e) }) {
			t.Fatal(err)
		}
		agents := 0
		var last time.Time
		for i := range list {
			rec := &list[i]
			if i > 0 && rec.At.Before(last) {
				t.Fatalf("time decreased from %v to %v", last, rec.At)
			}
			last = rec.At
			if rec.Agent == -1 && rec.State == "" && rec.Events == nil {
				continue // only a time
			}
			if rec.State == Opened && rec.Agent == agents {
				agents++
			}
			if rec.Agent >= agents || !filepath.IsLocal(rec.About.Name) {
				t.Fatalf("%+v with %d agents", rec, agents)
			}
			if _, err := ringbuf.MakeBatch(rec.Layout, rec.Events); err != nil {
				t.Fatalf("layout %v: %v", rec.Layout, err)
			}
		}
	})
}
