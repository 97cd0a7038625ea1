// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/storetest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// stores creates a directory with the real store, whose process has exited, and the store
// of a running process. It is also the working directory of the test.
func stores(t *testing.T) (dir string, running *storetest.Writer) {
	t.Helper()
	dir = t.TempDir()
	storetest.Copy(t, dir)()
	storetest.Touch(t, filepath.Join(dir, storetest.Real))
	running = storetest.Create(t, dir, storetest.Config{Agent: "decode-0", Host: "gpu-1", PID: 4711})
	t.Chdir(dir)
	return dir, running
}

func TestInspectPrintsAStore(t *testing.T) {
	here, err := os.Getwd()
	must.OK(t, err)
	stores(t)
	r := nixlring(t.Context(), nil, "inspect", storetest.Real)
	if r.code != exitOK || r.err != "" {
		t.Errorf("%+v", r)
	}
	t.Chdir(here)
	out := r.out
	for pattern, with := range map[string]string{
		`uid \d+, gid \d+`: "uid 1000, gid 1000", `inode \d+ on device \w+:\w+`: "inode 42 on device fe:01",
		`Modified .*`: "Modified     0s ago, according to the file system", `Started .*`: "Started      2026-11-20 21:56:15, 3 h ago",
	} {
		out = regexp.MustCompile(pattern).ReplaceAllString(out, with)
	}
	golden(t, "inspect_store.txt", out)
}

// A Collector doesn't report a store that it finds so long after the exit of its process.
func TestInspectSaysThatAnOldStoreIsNotCounted(t *testing.T) {
	_, w := stores(t)
	w.Updated(100 * 365 * 24 * time.Hour) // before the machine was started
	w.Exit()
	r := nixlring(t.Context(), nil, "inspect", w.Name())
	if words := strings.Join(strings.Fields(r.out), " "); !strings.Contains(words, "A Collector doesn't count this store") ||
		strings.Contains(words, "counts its values") {
		t.Errorf("%+v", r)
	}
}

func TestInspectPrintsAStoreAsJSON(t *testing.T) {
	_, w := stores(t)
	w.Transfer(0, 4096, 50, 5)
	w.Transfer(0, 4096, 2000, 5)
	w.Count(storetest.Backend, 1)
	r := nixlring(t.Context(), nil, "inspect", w.Name(), "--output", "json")
	var got map[string]any
	must.OK(t, json.Unmarshal([]byte(r.out), &got))
	store, _ := got["store"].(map[string]any)
	start, _ := store["start"].(string)
	if _, err := time.Parse(time.RFC3339Nano, start); err != nil {
		t.Error(err)
	}
	delete(store, "start")
	bounds := []any{10e-6, 100e-6, 1e-3}
	want := map[string]any{
		"layout": "prometheus_mp_v1", "agent": "decode-0", "pid": 4711.0, "instance": 0.0, "host": "gpu-1",
		"transmit":                map[string]any{"bytes": 8192.0, "requests": 2.0},
		"receive":                 map[string]any{"bytes": 0.0, "requests": 0.0},
		"memory_registered_bytes": 0.0, "memory_deregistered_bytes": 0.0, "events_dropped": 0.0,
		"transfer_time": map[string]any{"count": 2.0, "sum_seconds": 2050e-6, "bounds_seconds": bounds, "counts": []any{0.0, 1.0, 0.0, 1.0}},
		"post_time":     map[string]any{"count": 2.0, "sum_seconds": 10e-6, "bounds_seconds": bounds, "counts": []any{2.0, 0.0, 0.0, 0.0}},
		"errors":        map[string]any{"backend": 1.0},
	}
	if diff := cmp.Diff(want, store); diff != "" {
		t.Error(diff)
	}
	if advice, _ := got["advice"].([]any); r.code != exitOK || got["ring"] != false || got["agent_alive"] != true || len(advice) != 0 {
		t.Errorf("%+v", r)
	}
	if r := nixlring(t.Context(), nil, "inspect", w.Name()); !regexp.MustCompile(`(?m)^State +running: `).MatchString(r.out) ||
		!strings.Contains(r.out, "2, on average 1.02 ms, the longest over 1 ms\n") {
		t.Errorf("%+v", r)
	}
}

func TestInspectSaysWhyAStoreCantBeReadAndWhatToDo(t *testing.T) {
	for name, tt := range map[string]struct {
		change          func(t *testing.T, path string)
		problem, advice string
	}{
		"truncated": {
			func(t *testing.T, path string) { must.OK(t, os.Truncate(path, 100)) },
			"invalid store: file has 100 bytes, but 21 event types take 6800", "restart the process",
		},
		"other version": {
			func(t *testing.T, path string) {
				b, err := os.ReadFile(path)
				must.OK(t, err)
				b[8] = 2
				must.OK(t, os.WriteFile(path, b, 0o600))
			},
			"unknown store version 2", "update nixlring and the Collector",
		},
		"link": {
			func(t *testing.T, path string) {
				must.OK(t, os.Rename(path, "store"))
				must.OK(t, os.Symlink("store", path))
			},
			"it is a symbolic link", "",
		},
		"another user's": {
			func(t *testing.T, _ string) { becomeNobody(t) },
			"no permission to read: the file belongs to uid 0", "the Collector as uid 0 or with CAP_DAC_READ_SEARCH",
		},
	} {
		t.Run(name, func(t *testing.T) {
			stores(t)
			tt.change(t, storetest.Real)
			r := nixlring(t.Context(), nil, "inspect", storetest.Real)
			words := strings.Join(strings.Fields(r.out), " ")
			if r.code != exitNoRing || r.err != "" || !strings.HasPrefix(words, "Store "+storetest.Real+" Problem ") ||
				!strings.Contains(words, tt.problem) || !strings.Contains(words, tt.advice) ||
				strings.Contains(words, "Advice") != (tt.advice != "") {
				t.Errorf("%+v", r)
			}
		})
	}
}

// becomeNobody takes the file permissions of root from the test.
func becomeNobody(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become another user")
	}
	runtime.LockOSThread()
	t.Cleanup(func() {
		must.OK(t, syscall.Setfsuid(0))
		runtime.UnlockOSThread()
	})
	must.OK(t, syscall.Setfsuid(65534))
}

func TestInspectWatchesNoStore(t *testing.T) {
	stores(t)
	r := nixlring(t.Context(), nil, "inspect", storetest.Real, "--for", "1s")
	if r.code != exitUsage || r.out != "" || !strings.Contains(r.err, "only a ring can be watched") {
		t.Errorf("%+v", r)
	}
}

func TestLsListsEachProcessWithAStore(t *testing.T) {
	dir, w := stores(t)
	for _, args := range [][]string{{"ls", dir}, {"ls", "--require", dir}} {
		r := nixlring(t.Context(), nil, args...)
		table := strings.Split(regexp.MustCompile(` +`).ReplaceAllString(r.out, " "), "\n")
		if r.code != exitOK || r.err != "" || len(table) != 4 ||
			!strings.HasPrefix(table[1], filepath.Join(dir, storetest.Real)+" prometheus_mp_v1 - - - no ") ||
			!strings.HasSuffix(table[1], " agent mpA on vm, local rank 0; process exited") ||
			!strings.HasPrefix(table[2], w.Path()+" prometheus_mp_v1 - - - yes ") || !strings.HasSuffix(table[2], " agent decode-0 on gpu-1") {
			t.Errorf("%v: %+v", args, r)
		}
	}
	r := nixlring(t.Context(), nil, "ls", dir, "-o", "json")
	var got []map[string]any
	must.OK(t, json.Unmarshal([]byte(r.out), &got))
	for _, field := range []string{"owner_uid", "modified", "age_seconds"} {
		delete(got[0], field)
	}
	want := map[string]any{
		"path": filepath.Join(dir, storetest.Real), "ring": false, "layout": "prometheus_mp_v1",
		"agent": "mpA", "pid": 17832.0, "host": "vm", "local_rank": "0", "agent_alive": false,
		"notes": []any{"agent mpA on vm, local rank 0", "process exited"},
	}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Error(diff)
	}
}

func TestLsListsStoresBesideRingsAndInSubdirectories(t *testing.T) {
	dir, w := stores(t)
	ring, err := ringbuf.Create("ring", ringbuf.V4, 16)
	must.OK(t, err)
	must.OK(t, ring.Close())
	must.OK(t, os.WriteFile("letter", []byte(strings.Repeat("Dear Sir, ", 50)), 0o600))
	must.OK(t, os.Mkdir("sub", 0o700))
	must.OK(t, os.Rename(storetest.Real, filepath.Join("sub", storetest.Real)))
	for _, tt := range []struct{ want, args []string }{
		{[]string{w.Name(), "ring"}, nil},
		{[]string{w.Name(), "ring", "sub/" + storetest.Real}, []string{"-r"}},
		{[]string{"letter", w.Name(), "ring"}, []string{"--all"}},
	} {
		r := nixlring(t.Context(), nil, append([]string{"ls", dir, "-o", "json"}, tt.args...)...)
		var list []struct{ Path string }
		must.OK(t, json.Unmarshal([]byte(r.out), &list))
		var got []string
		for _, e := range list {
			name, err := filepath.Rel(dir, e.Path)
			must.OK(t, err)
			got = append(got, name)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%v: %s", tt.args, diff)
		}
	}
}

func TestLsSaysWhyStoresCantBeRead(t *testing.T) {
	_, w := stores(t)
	must.OK(t, os.Truncate(storetest.Real, 100))
	must.OK(t, os.Symlink(w.Name(), "nixl.1.1.1.mmap"))
	r := nixlring(t.Context(), nil, "ls", ".")
	if r.code != exitOK || !strings.Contains(r.out, "invalid store: file has 100 bytes, but 21 event types take 6800\n") ||
		r.err != "1 other file is neither a ring nor a store (--all lists them)\n" {
		t.Errorf("%+v", r)
	}
	becomeNobody(t)
	r = nixlring(t.Context(), nil, "ls", ".")
	if r.code != exitOK || strings.Count(r.out, "no permission to read: the file belongs to uid 0") != 2 || strings.Contains(r.err, "no ring") {
		t.Errorf("%+v", r)
	}
}

func TestTopShowsStores(t *testing.T) {
	dir, w := stores(t)
	w.Transfer(0, 4096, 50, 5)
	// The process writes during the window.
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				w.Transfer(0, 1<<20, 50, 5)
			}
		}
	}()
	r := nixlring(t.Context(), nil, "top", dir, "-o", "json", "-w", "1s")
	close(stop)
	<-done
	var list []measured
	must.OK(t, json.Unmarshal([]byte(r.out), &list))
	i := slices.IndexFunc(list, func(m measured) bool { return m.Agent == "decode-0" })
	if r.code != exitOK || i < 0 {
		t.Fatalf("%+v", r)
	}
	m := list[i]
	if m.Transmit <= 0 || m.Transfers <= 0 || m.TransferP50 == nil || m.Alive == nil || !*m.Alive || m.Reader != "" || len(m.Problems) > 0 || m.Layout != "prometheus_mp_v1" {
		t.Errorf("%+v", m)
	}
	if m.Speed == nil || math.Abs(*m.Speed/(1<<20/50e-6)-1) > 0.01 {
		t.Errorf("speed %v, want 1 MiB in 50 µs", m.Speed)
	}
}

func TestLsListsTheStoresOfTheEnvironmentByDefault(t *testing.T) {
	dir, w := stores(t)
	env := map[string]string{
		"NIXL_TELEMETRY_ENABLE": "y", "NIXL_TELEMETRY_EXPORTER": "prometheus_mp", "NIXL_TELEMETRY_MULTIPROC_DIR": dir,
		"NIXL_TELEMETRY_DIR": t.TempDir(),
	}
	if r := nixlring(t.Context(), env, "ls"); r.code != exitOK || !strings.Contains(r.out, filepath.Join(dir, w.Name())) {
		t.Errorf("%+v", r)
	}
}
