// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fixture is a reporter with a clock, and its lines.
type fixture struct {
	*Reporter
	lines []string
	now   time.Time
}

func newFixture() *fixture {
	x := &fixture{now: time.Unix(1e9, 0)}
	x.Reporter = New(func(n Notice) { x.lines = append(x.lines, n.String()) }, func() time.Time { return x.now })
	return x
}

func (x *fixture) check(t *testing.T, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, x.lines); d != "" {
		t.Errorf("lines (-want +got)\n%s", d)
	}
	x.lines = nil
}

func TestRepetitionsAreSuppressedForAMinute(t *testing.T) {
	x := newFixture()
	broken := Notice{Level: slog.LevelWarn, Path: "/d/a", Text: "ring is broken", Err: errors.New("first")}
	x.Report(broken)
	x.now = x.now.Add(59 * time.Second)
	broken.Err = errors.New("second")
	x.Report(broken)
	x.Report(Notice{Level: slog.LevelWarn, Path: "/d/b", Text: "ring is broken"})
	x.Report(Notice{Level: slog.LevelWarn, Path: "/d/a", Text: "ring is full"})
	x.check(t, "/d/a: ring is broken: first", "/d/b: ring is broken", "/d/a: ring is full")
	x.now = x.now.Add(time.Second)
	x.Report(broken)
	x.check(t, "1 suppressed: repetitions, or too many lines in a minute", "/d/a: ring is broken: second")
	x.Close()
	x.check(t)
}

func TestLinesPerMinuteAreLimited(t *testing.T) {
	x := newFixture()
	for i := range 500 {
		path := fmt.Sprint("/d/", i)
		x.Report(Notice{Level: slog.LevelDebug, Path: path, Text: "not a ring"})
		x.Report(Notice{Level: slog.LevelInfo, Path: path, Text: "ring opened"})
	}
	if len(x.lines) != 60 {
		t.Errorf("%d lines, want 60", len(x.lines))
	}
	for i := range 500 {
		x.Report(Notice{Level: slog.LevelWarn, Path: fmt.Sprint("/d/", i), Text: "ring was full"})
	}
	if len(x.lines) != 90 {
		t.Errorf("%d lines, want 90", len(x.lines))
	}
	for i := range 500 {
		x.Report(Notice{Level: slog.LevelError, Path: fmt.Sprint("/d/", i), Text: "ring refused"})
	}
	if len(x.lines) != 100 || len(x.reported) != 100 {
		t.Errorf("%d lines and %d in memory, want 100", len(x.lines), len(x.reported))
	}
	x.lines = nil
	x.Close()
	x.Close()
	x.check(t, "1410 suppressed: repetitions, or too many lines in a minute")
}

// They are hidden by default, and a directory can contain thousands of files that aren't rings.
func TestSuppressedNoticesForDebuggingAreNotCounted(t *testing.T) {
	x := newFixture()
	for i := range 100 {
		x.Report(Notice{Level: slog.LevelDebug, Path: fmt.Sprint("/d/", i), Text: "not a ring"})
	}
	x.lines = nil
	x.Close()
	x.check(t)
}

func TestReporterIsSafeForConcurrentUse(t *testing.T) {
	var mu sync.Mutex
	lines := 0
	r := New(func(Notice) { mu.Lock(); defer mu.Unlock(); lines++ }, time.Now)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 10 {
				r.Report(Notice{Path: fmt.Sprint(i), Text: "ring opened"})
			}
		})
	}
	all.Wait()
	if lines != 10 {
		t.Errorf("%d lines, want 10", lines)
	}
}

// Any process that can create a file chooses its name.
func TestNamesCannotInjectALogLine(t *testing.T) {
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
}
