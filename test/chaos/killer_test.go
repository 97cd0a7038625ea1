// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/nixl-otel/nixl-otel/test/chaos/internal/backend"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// killer runs Collectors one after the other on the same rings and the same
// storage, and kills each.
type killer struct {
	rng    *rand.Rand
	to     *backend.Backend
	args   []string
	state  string // directory of the storage
	stalls bool   // it is stopped for a while now and then, as on a busy machine

	kills int
	told  []entry         // what Collectors complained of
	slow  map[string]bool // paths of rings that couldn't wait for the storage, as the Collector said
}

// newKiller sets up Collectors of a directory of rings that report to a
// backend. They drain and save as often as can be, so that a kill is likely to
// come while they are at it.
func newKiller(t *testing.T, rng *rand.Rand, rings string, fsync bool) *killer {
	t.Helper()
	k := &killer{
		rng: rng, to: backend.NewHTTP(t), state: filepath.Join(t.TempDir(), "state"), slow: make(map[string]bool),
	}
	k.args = setup{overlays: []string{fmt.Sprintf(`
extensions:
  file_storage: {directory: %q, create_directory: true, fsync: %v}
receivers:
  nixl_shm:
    directories: [%q]
    run_interval: 10ms
    initial_delay: 0s
    collection_interval: 100ms
    storage: file_storage
    resource_attributes: {nixl.telemetry.path: {enabled: true}}
exporters:
  otlp_http: {endpoint: %q, sending_queue: {num_consumers: 1}}
service:
  extensions: [file_storage]
  pipelines: {metrics: {receivers: [nixl_shm], exporters: [otlp_http]}}
`, k.state, fsync, rings, k.to.URL())}}.command(t)
	return k
}

// round starts a Collector and kills it: while it starts, or some time later,
// or right when it writes to its storage.
func (k *killer) round(t *testing.T) {
	t.Helper()
	c := launch(t, k.args, nil)
	switch k.rng.IntN(5) {
	case 0:
		pass(t, upTo(k.rng, 800*time.Millisecond))
	case 1, 2:
		c.WaitFor(t, ready)
		pass(t, upTo(k.rng, 1500*time.Millisecond))
	default:
		c.WaitFor(t, ready)
		pass(t, upTo(k.rng, 700*time.Millisecond))
		k.awaitWrites(t)
		if k.rng.IntN(2) == 0 { // else at once: a save takes less than a timer
			pass(t, upTo(k.rng, 500*time.Microsecond))
		}
	}
	if k.stalls && k.rng.IntN(5) == 0 {
		c.Signal(t, syscall.SIGSTOP)
		pass(t, upTo(k.rng, time.Second))
		c.Signal(t, sigcont)
		pass(t, upTo(k.rng, 300*time.Millisecond))
	}
	c.Kill(t)
	k.kills++
	k.note(c)
}

// last runs a Collector until it has done its work, and ends it as an operator
// does, so that its last totals are with the backend.
func (k *killer) last(t *testing.T, missing func() string) {
	t.Helper()
	c := launch(t, k.args, nil)
	c.WaitFor(t, ready)
	// It says so a moment before it minds signals: only after another
	// collection it surely does.
	k.to.AwaitMore(t)
	proc.Eventually(t, missing)
	c.Stop(t, sigterm)
	k.note(c)
}

// note keeps what a Collector complained of.
func (k *killer) note(c collector) {
	for _, e := range c.complaints() {
		if strings.Contains(e.Message, "ring was about to fill up before its checkpoint was stored") {
			k.slow[e.Path] = true // without a path it is of more rings than are named
		}
		k.told = append(k.told, e)
	}
}

// excused says whether a ring may have lost events to a crash: where the
// storage was so slow that its events couldn't wait for it. The Collector says
// so; a test only doesn't choose how slow a disk is.
func (k *killer) excused(t *testing.T, path string) bool {
	t.Helper()
	if k.slow[path] || k.slow[""] {
		t.Logf("%s: the storage was too slow for it: not held to what it lost", filepath.Base(path))
	}
	return k.slow[path]
}

// check fails the test for points that contradict each other and, where it has
// failed, shows what the Collectors complained of.
func (k *killer) check(t *testing.T) {
	t.Helper()
	for _, wrong := range k.to.Contradictions() {
		t.Error(wrong)
	}
	if !t.Failed() {
		return
	}
	for _, e := range k.told {
		// A ring is full whenever the Collector is down, and a file was truncated by the test.
		if !strings.Contains(e.Message, "ring was full") && !strings.Contains(e.Error, "was it truncated?") {
			t.Log(e.line)
		}
	}
}

// awaitWrites waits until something was written to the storage a few times, or
// a second has passed without. A save writes twice: what it is about, and that
// this holds now.
func (k *killer) awaitWrites(t *testing.T) {
	t.Helper()
	w, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Add(k.state); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	for range 1 + k.rng.IntN(4) {
		select {
		case <-w.Events:
		case err := <-w.Errors:
			t.Fatal(err)
		case <-timer.C:
			return
		}
	}
}

// pass lets a time pass. It is for the moment of a kill, which shall be any.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-t.Context().Done():
	case <-timer.C:
	}
}
