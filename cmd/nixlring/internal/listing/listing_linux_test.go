// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package listing_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/listing"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// world creates a directory with rings and other files.
func world(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must.OK(t, os.MkdirAll(at("team"), 0o755))
	for name, events := range map[string]int{"busy": 7, "idle": 0, "team/nested": 3} {
		w, err := ringbuf.Create(at(name), ringbuf.V4, 8)
		must.OK(t, err)
		for range events {
			must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeErrBackend, 1)))
		}
		must.OK(t, w.Close())
	}
	must.OK(t, os.WriteFile(at("text"), []byte(strings.Repeat("hello ", 50)), 0o644))
	must.OK(t, os.WriteFile(at("starting"), nil, 0o644))
	must.OK(t, os.WriteFile(at("empty"), nil, 0o644))
	long := time.Now().Add(-time.Hour)
	must.OK(t, os.Chtimes(at("empty"), long, long))
	must.OK(t, os.WriteFile(at("zeros"), make([]byte, 4096), 0o644))
	must.OK(t, os.WriteFile(at("zeros like a ring"), make([]byte, 40+12*16), 0o644))
	must.OK(t, os.Symlink("busy", at("link")))
	must.OK(t, syscall.Mkfifo(at("fifo"), 0o644))
	must.OK(t, os.WriteFile(at("newer"), newer(t, at("idle")), 0o644))
	return dir
}

// newer returns the content of a ring with an unknown version.
func newer(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	must.OK(t, err)
	const version = 16
	b[version] = 9
	return b
}

// walk returns the kind of each file: ring, other or broken.
func walk(t *testing.T, root string, recursive bool) map[string]string {
	t.Helper()
	got := map[string]string{}
	must.OK(t, listing.Walk(t.Context(), []string{root}, recursive, func(e listing.Entry) {
		name, err := filepath.Rel(root, e.Path)
		must.OK(t, err)
		switch {
		case e.Ring:
			got[name] = "ring"
		case e.Other:
			got[name] = "other"
		default:
			got[name] = "broken"
		}
		if e.Ring == (e.Err != nil) || e.Ring == (e.Reason() != "") {
			t.Errorf("%s: ring %v, error %v", name, e.Ring, e.Err)
		}
		if strings.Contains(e.Reason(), root) {
			t.Errorf("the reason contains the path: %s", e.Reason())
		}
		if e.Owner != uint32(os.Getuid()) || e.Modified.IsZero() {
			t.Errorf("%s: owner %d, modified %v", name, e.Owner, e.Modified)
		}
	}))
	return got
}

func TestWalkFindsRingsAndOtherFiles(t *testing.T) {
	dir := world(t)
	want := map[string]string{
		"busy": "ring", "idle": "ring",
		"newer": "broken", "starting": "broken", "zeros like a ring": "broken",
		"text": "other", "empty": "other", "zeros": "other", "link": "other", "fifo": "other",
	}
	if diff := cmp.Diff(want, walk(t, dir, false)); diff != "" {
		t.Error(diff)
	}
	want[filepath.Join("team", "nested")] = "ring"
	if diff := cmp.Diff(want, walk(t, dir, true)); diff != "" {
		t.Error(diff)
	}
}

func TestWalkAcceptsFilesAndConsumesNothing(t *testing.T) {
	dir := world(t)
	var got []listing.Entry
	for _, name := range []string{"busy", "text"} {
		must.OK(t, listing.Walk(t.Context(), []string{filepath.Join(dir, name)}, false, func(e listing.Entry) {
			got = append(got, e)
		}))
	}
	if len(got) != 2 || !got[0].Asked || !got[1].Asked {
		t.Fatalf("want two files with Asked: %+v", got)
	}
	e := got[0]
	if e.Layout != ringbuf.V4 || e.Capacity != 8 || e.Pending != 7 || e.Fill() != 1 {
		t.Errorf("a full ring of 8 slots: %+v, fill %v", e, e.Fill())
	}
	// Walk must not consume events.
	r, err := ringbuf.OpenReader(e.Path, ringbuf.Consume)
	must.OK(t, err)
	defer r.Close()
	if n, err := r.Read(0, func(ringbuf.Batch) {}); n != 7 || err != nil {
		t.Errorf("%d events left: %v", n, err)
	}
}

func TestMissingDirectoryIsAnErrorAndOthersAreListed(t *testing.T) {
	dir := world(t)
	missing := filepath.Join(dir, "missing")
	n := 0
	err := listing.Walk(t.Context(), []string{missing, dir}, false, func(listing.Entry) { n++ })
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), missing) {
		t.Errorf("a missing directory: %v", err)
	}
	if n != 10 {
		t.Errorf("%d files in the other directory, want 10", n)
	}
}

func TestWalkStopsWhenTheContextIsCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := listing.Walk(ctx, []string{t.TempDir()}, false, func(listing.Entry) { t.Error("Walk continued") })
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestUnreadableFilesAreClassifiedBySize(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root can read all files")
	}
	dir := t.TempDir()
	for name, size := range map[string]int{"letter": 1001, "ring": 40 + 4096*16} {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0))
	}
	if diff := cmp.Diff(map[string]string{"letter": "other", "ring": "broken"}, walk(t, dir, false)); diff != "" {
		t.Error(diff)
	}
}

func TestNotesDependOnTheStateAndTheUser(t *testing.T) {
	full := listing.Entry{Ring: true, Capacity: 8, Pending: 7, Owner: 5, Alive: procs.Yes}
	for _, tt := range []struct {
		want  []string
		entry listing.Entry
		euid  int
	}{
		{[]string{"full: the agent loses events"}, full, 5},
		{[]string{"full: the agent loses events", "only uid 5 or root can consume it"}, full, 6},
		{[]string{"full: the agent loses events"}, full, 0},
		{[]string{"agent exited"}, listing.Entry{Ring: true, Capacity: 8, Pending: 7, Alive: procs.No}, 0},
		{nil, listing.Entry{Ring: true, Capacity: 8, Pending: 6}, 0},
		{nil, listing.Entry{Owner: 5, Err: fs.ErrPermission}, 6},
	} {
		if diff := cmp.Diff(tt.want, tt.entry.Notes(tt.euid)); diff != "" {
			t.Errorf("%+v: %s", tt.entry, diff)
		}
	}
}

func TestNotesOfAFullRingDependOnTheAgent(t *testing.T) {
	e := listing.Entry{Ring: true, Capacity: 8, Pending: 7, Alive: procs.Yes}
	for want, change := range map[string]func(*listing.Entry){
		"full: the agent loses events":                    func(*listing.Entry) {},
		"full: the agent, if it is running, loses events": func(e *listing.Entry) { e.Alive = procs.Unknown },
		"agent exited": func(e *listing.Entry) { e.Alive = procs.No },
	} {
		full := e
		change(&full)
		if diff := cmp.Diff([]string{want}, full.Notes(0)); diff != "" {
			t.Error(diff)
		}
	}
}
