// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestIncludeSelectsRings(t *testing.T) {
	for _, tc := range []struct{ include, want []string }{
		{[]string{"*"}, []string{".hidden", "a", "b.tmp"}},
		{[]string{"pod/*"}, []string{"pod/a", "pod/b.tmp"}},
		{[]string{"*/*/a", "a"}, []string{"a", "pod/rank/a"}},
		{[]string{"**"}, []string{".hidden", "a", "b.tmp", "pod/a", "pod/b.tmp", "pod/rank/a"}},
		{[]string{"[^.]*"}, []string{"a", "b.tmp"}},
		{[]string{"{a,pod/a}"}, []string{"a", "pod/a"}},
	} {
		x := newFixture(t)
		must.OK(t, os.MkdirAll(x.path("pod/rank"), 0o750))
		for _, name := range []string{"a", "b.tmp", ".hidden", "pod/a", "pod/b.tmp", "pod/rank/a"} {
			x.ring(name, ringbuf.V4, 8)
		}
		d := x.directory(func(c *options) { c.Include = tc.include })
		x.round(d)
		var got []string
		for _, m := range x.owner.takeMessages() {
			if m, ok := m.(drain.Offer); ok {
				got = append(got, m.Agent.Name)
				if m.Agent.Dir != x.dir || m.Agent.Path != x.path(m.Agent.Name) {
					t.Errorf("agent = %+v", m.Agent)
				}
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("include %q: %s", tc.include, diff)
		}
	}
}

func TestWalkIsLimited(t *testing.T) {
	x := newFixture(t)
	must.OK(t, os.Mkdir(x.path("sub"), 0o750))
	for i := range 30 {
		touch(t, x.path(fmt.Sprint("file-", i)), "no ring")
		touch(t, x.path(fmt.Sprint("sub/file-", i)), "no ring")
	}
	d := x.directory(func(c *options) { c.Include = []string{"**"} })
	f, err := files.OpenDir(x.dir, ".")
	must.OK(t, err)
	defer f.Close()
	w := walk{Directory: d, left: 40, listed: make(map[string]files.Info)}
	must.OK(t, w.list(f, ".", files.Info{}))
	if n := len(d.records); w.left != 0 || n > 40 || n < 38 {
		t.Errorf("%d entries are left, %d files were checked", w.left, n)
	}
}

// outside creates a ring with 5 events in another directory, and checks at the end that
// they weren't consumed.
func outside(t *testing.T) *ringbuf.Writer {
	t.Helper()
	target, err := ringbuf.Create(filepath.Join(t.TempDir(), "agent"), ringbuf.V4, 16)
	must.OK(t, err)
	t.Cleanup(func() {
		if n, _ := target.Len(); n != 5 {
			t.Errorf("a ring outside the directory was consumed: %d of 5 events are left", n)
		}
		_ = target.Close()
	})
	push(t, target, 5)
	return target
}

// Another user may replace a directory with a link.
func TestLinkInPlaceOfDirectoryIsNotFollowed(t *testing.T) {
	for name, before := range map[string]func(t *testing.T, x *fixture){
		"a refused file": func(t *testing.T, x *fixture) { touch(t, x.path("sub/agent"), "") },
		"an open ring":   func(_ *testing.T, x *fixture) { x.ring("sub/agent", ringbuf.V4, 16) },
	} {
		t.Run(name, func(t *testing.T) {
			x, target := newFixture(t), outside(t)
			sub := x.path("sub")
			must.OK(t, os.Mkdir(sub, 0o750))
			before(t, x)
			d := x.directory(func(c *options) { c.Include = []string{"**"} })
			x.round(d)
			must.OK(t, os.Rename(sub, filepath.Join(t.TempDir(), "away")))
			must.OK(t, os.Symlink(filepath.Dir(target.Path()), sub))
			d.checkPath(d.record("sub/agent"))
			x.advance(time.Second)
			d.poll()
			x.round(d)
			if r := d.records[x.path("sub/agent")]; r != nil && r.state != absent {
				t.Errorf("the state of a file behind a link is %d, want absent", r.state)
			}
		})
	}
}

// Another user may replace directories after the walk has listed them and before it opens
// them.
func TestDirReplacedDuringWalkIsSkipped(t *testing.T) {
	for name, put := range map[string]func(path, elsewhere string) error{
		"FIFO": func(path, _ string) error { return syscall.Mkfifo(path, 0o600) },
		"link": func(path, elsewhere string) error { return os.Symlink(elsewhere, path) },
	} {
		t.Run(name, func(t *testing.T) {
			x, target := newFixture(t), outside(t)
			const dirs = 50 // at least one of them comes after a file
			dir := func(i int) string { return x.path(fmt.Sprint("dir-", i)) }
			for i := range dirs {
				touch(t, x.path(fmt.Sprint("file-", i)), "no ring")
				must.OK(t, os.Mkdir(dir(i), 0o750))
			}
			var once sync.Once
			replace := func() {
				for i := range dirs {
					if err := errors.Join(os.Remove(dir(i)), put(dir(i), filepath.Dir(target.Path()))); err != nil {
						t.Error(err)
					}
				}
			}
			d := x.directory(func(c *options) {
				c.Include = []string{"**"}
				c.Now = func() time.Time {
					once.Do(replace)
					return x.clock()
				}
			})
			x.round(d)
			if n := count[drain.Offer](x.owner); n != 0 {
				t.Errorf("%d rings were opened", n)
			}
		})
	}
}
