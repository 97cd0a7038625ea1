// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// recorder records reported notices.
type recorder struct {
	mu    sync.Mutex
	lines []Notice
}

func (r *recorder) report(n Notice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, n)
}

// take returns the lines since the last call.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lines []string
	for _, n := range r.lines {
		lines = append(lines, n.String())
	}
	r.lines = nil
	return lines
}

func opened(path string) Notice {
	return Notice{Kind: RingOpened, Level: slog.LevelInfo, Path: path, Text: "ring opened"}
}

// inBubble runs a test in a bubble of synctest.
func inBubble(t *testing.T, fn func(t *testing.T, r *Reporter, got *recorder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var got recorder
		fn(t, New(got.report, time.Now), &got)
	})
}

func pass(d time.Duration) {
	time.Sleep(d) // in a bubble of synctest
	synctest.Wait()
}

func check(t *testing.T, got *recorder, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got.take()); diff != "" {
		t.Error(diff)
	}
}

func TestFewNoticesAreReportedOneByOne(t *testing.T) {
	inBubble(t, func(t *testing.T, r *Reporter, got *recorder) {
		r.Report(opened("/d/b"))
		r.Report(Notice{Kind: RingRefused, Path: "/d/c", Text: "ring can't be opened", Err: errors.New("cause")})
		r.Report(opened("/d/a"))
		check(t, got)
		pass(hold)
		check(t, got, "/d/b: ring opened", "/d/a: ring opened", "/d/c: ring can't be opened: cause")
	})
}

func TestManySubjectsAreMerged(t *testing.T) {
	for n, want := range map[int]int{1: 1, maxSingle: maxSingle, maxSingle + 1: 1, 64: 1} {
		inBubble(t, func(t *testing.T, r *Reporter, got *recorder) {
			for i := range n {
				r.Report(opened(fmt.Sprintf("/d/%02d", i)))
			}
			pass(hold)
			lines := got.take()
			if len(lines) != want {
				t.Errorf("%d rings result in %d lines: %q", n, len(lines), lines)
			}
			if n == 64 && lines[0] != "64 rings, /d/00 to /d/63: ring opened" {
				t.Errorf("line is %q", lines[0])
			}
		})
	}
}

// The first rings get a line each, and the others share one.
func TestSubjectsThatArriveSlowlyAreMerged(t *testing.T) {
	inBubble(t, func(t *testing.T, r *Reporter, got *recorder) {
		var lines []string
		for i := range 40 {
			r.Report(opened(fmt.Sprintf("/d/%02d", i)))
			pass(window / 40)
			lines = append(lines, got.take()...)
		}
		pass(window)
		lines = append(lines, got.take()...)
		if len(lines) > 2*(maxSingle+1) {
			t.Errorf("%d lines: %q", len(lines), lines)
		}
		if last := lines[len(lines)-1]; !strings.Contains(last, " more rings, ") {
			t.Errorf("the last line is %q", last)
		}
	})
}

func TestEachCauseHasALine(t *testing.T) {
	inBubble(t, func(t *testing.T, r *Reporter, got *recorder) {
		for i := range 30 {
			path, cause := fmt.Sprintf("/d/%02d", i), "permission denied"
			if i%3 == 0 {
				cause = fmt.Sprintf("%d bytes are missing", i+1) // numbers differ, the cause doesn't
			}
			r.Report(Notice{Kind: RingRefused, Level: slog.LevelWarn, Path: path, Text: "ring can't be opened", Err: fmt.Errorf("open %s: %s", path, cause)})
		}
		r.Flush()
		check(t, got,
			"10 rings, /d/00 to /d/27: ring can't be opened: the first: open /d/00: 1 bytes are missing",
			"20 rings, /d/01 to /d/29: ring can't be opened: open /d/01: permission denied")
	})
}

func TestCausesAreLimited(t *testing.T) {
	inBubble(t, func(t *testing.T, r *Reporter, got *recorder) {
		for i := range 26 {
			r.Report(Notice{Kind: RingBroken, Path: fmt.Sprintf("/d/%02d", i), Text: "broken", Err: fmt.Errorf("cause %c", 'a'+i)})
		}
		r.Flush()
		lines := got.take()
		want := "19 rings, /d/07 to /d/25: several causes, the first: broken: cause h"
		if last := lines[len(lines)-1]; len(lines) != maxCauses || last != want {
			t.Errorf("%d lines, the last %q, want %q", len(lines), last, want)
		}
	})
}

// A process that can write to a ring can break it, or restart on it, repeatedly.
func TestOneRingCannotFloodTheLog(t *testing.T) {
	inBubble(t, func(t *testing.T, r *Reporter, got *recorder) {
		for i := range 500 {
			n := opened("/d/a")
			n.Text = fmt.Sprintf("ring opened for time %d", i)
			r.Report(n)
			if i == 0 {
				pass(hold)
			}
		}
		check(t, got, "/d/a: ring opened for time 0")
		pass(repeat - window)
		check(t, got)
		pass(2 * window)
		check(t, got, "/d/a: ring opened for time 499 (and 498 more times)")
		pass(2 * repeat)
		r.Report(opened("/d/a"))
		pass(hold)
		check(t, got, "/d/a: ring opened")
	})
}

func TestKindsOfOneSubjectAreIndependent(t *testing.T) {
	inBubble(t, func(t *testing.T, r *Reporter, got *recorder) {
		r.Report(opened("/d/a"))
		pass(hold)
		r.Report(Notice{Kind: RingRemoved, Path: "/d/a", Text: "removed"})
		pass(hold)
		check(t, got, "/d/a: ring opened", "/d/a: removed")
	})
}

// No notice is lost.
func TestNumberOfRememberedSubjectsIsLimited(t *testing.T) {
	inBubble(t, func(t *testing.T, r *Reporter, got *recorder) {
		const rounds, names = 20, 1000
		for i := range rounds {
			for j := range names {
				r.Report(opened(fmt.Sprintf("/d/%02d-%04d", i, j)))
			}
			pass(window)
		}
		if n := len(r.subjects); n > maxSubjects+names {
			t.Errorf("%d subjects are remembered", n)
		}
		r.Close()
		total := 0
		for _, line := range got.take() {
			var n int
			if _, err := fmt.Sscanf(line, "%d ", &n); err != nil {
				n = 1
			}
			total += n
		}
		if total != rounds*names {
			t.Errorf("%d of %d notices are reported", total, rounds*names)
		}
	})
}

func TestCloseReportsWaitingNotices(t *testing.T) {
	inBubble(t, func(t *testing.T, r *Reporter, got *recorder) {
		r.Report(opened("/d/a"))
		pass(hold)
		r.Report(opened("/d/a"))
		r.Report(opened("/d/b"))
		r.Close()
		check(t, got, "/d/a: ring opened", "/d/a: ring opened", "/d/b: ring opened")
		r.Close()
		check(t, got)
	})
}

// Nothing is logged after the Collector has shut down.
func TestCloseWaitsForALineThatIsBeingLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got recorder
		release := make(chan struct{})
		r := New(func(n Notice) { <-release; got.report(n) }, time.Now)
		r.Report(opened("/d/a"))
		pass(hold)
		time.AfterFunc(time.Second, func() { close(release) })
		r.Close()
		check(t, &got, "/d/a: ring opened")
	})
}

// A logger may call Report, and a slow logger delays no caller.
func TestLoggerIsCalledWithoutALock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got recorder
		var r *Reporter
		release := make(chan struct{})
		r = New(func(n Notice) {
			if n.Kind == RingOpened {
				r.Report(Notice{Kind: RingFull, Path: n.Path, Text: "full"})
				<-release
			}
			got.report(n)
		}, time.Now)
		r.Report(opened("/d/a"))
		pass(hold)
		r.Report(Notice{Kind: RingRemoved, Path: "/d/b", Text: "removed"})
		pass(window)
		lines := got.take()
		slices.Sort(lines)
		if diff := cmp.Diff([]string{"/d/a: full", "/d/b: removed"}, lines); diff != "" {
			t.Error(diff)
		}
		close(release)
		synctest.Wait()
		check(t, &got, "/d/a: ring opened")
	})
}

func TestMessageCountsRepetitions(t *testing.T) {
	for again, want := range map[int]string{0: "/d/a: text", 1: "/d/a: text (and once more)", 2: "/d/a: text (and 2 more times)"} {
		if got := (Notice{Path: "/d/a", Text: "text", Again: again}).Message(); got != want {
			t.Errorf("message is %q, want %q", got, want)
		}
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
	many := make([]Notice, maxSingle+1)
	for i := range many {
		many[i] = Notice{Kind: NotRing, Path: fmt.Sprintf("/tmp/\n%d", i), Text: "text", Err: errors.New("cause")}
	}
	if got := sum(many, false); len(got) != 1 || got[0].String() != `9 files, "/tmp/\n0" to "/tmp/\n8": text: cause` {
		t.Errorf("notices are %v", got)
	}
}

func TestMergedLineIsTrueOfAllSubjects(t *testing.T) {
	for name, tc := range map[string]struct {
		texts []string
		want  []string
	}{
		"the same":  {[]string{"ring opened (layout v4, 8 slots)"}, []string{"ring opened (layout v4, 8 slots)"}},
		"numbers":   {[]string{"ring opened (layout v4, 16 slots)", "ring opened (layout v1, 4096 slots)"}, []string{"ring opened (layout v1 to v4, 16 to 4096 slots)"}},
		"digits":    {[]string{"set SIZE=8 (now 7)", "set SIZE=16 (now 15)"}, []string{"set SIZE=8 to 16 (now 7 to 15)"}},
		"durations": {[]string{"took 1m30s", "took 1.5ms", "took 10s"}, []string{"took 1.5ms to 1m30s"}},
		"IDs":       {[]string{"container a1b2 is full", "container a3b4 is full"}, []string{"container a1b2 is full", "container a3b4 is full"}},
		"layouts":   {[]string{"layout v2", "layout v2-x"}, []string{"layout v2", "layout v2-x"}},
	} {
		var list []Notice
		for i := range 2 * maxSingle {
			list = append(list, Notice{Kind: RingOpened, Path: fmt.Sprintf("/d/%02d", i), Text: tc.texts[i%len(tc.texts)]})
		}
		var got []string
		for _, n := range sum(list, false) {
			_, text, _ := strings.Cut(n.Text, ": ")
			got = append(got, text)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
