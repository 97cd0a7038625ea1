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

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/test/chaos/internal/backend"
	"github.com/nixl-otel/nixl-otel/test/chaos/internal/ledger"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
)

// killer runs Collectors one after the other with the same rings and the same storage, and kills
// each.
type killer struct {
	rng    *rand.Rand
	to     *backend.Backend
	args   []string
	rings  string // directory
	state  string // directory of the storage
	stalls bool   // whether Collectors are sometimes suspended, as on a busy machine

	kills      int
	complaints []built.Entry      // warnings and errors of all Collectors
	unsaved    map[string]unsaved // by path
}

// newKiller prepares Collectors that read a directory of rings, store in the directory state, and
// export to a backend. They drain and save as often as possible, so that kills are likely to
// interrupt them.
func newKiller(t *testing.T, rng *rand.Rand, rings, state string, fsync bool) *killer {
	t.Helper()
	k := &killer{
		rng: rng, to: backend.NewHTTP(t), rings: rings, state: state, unsaved: make(map[string]unsaved),
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
    metrics: {nixl.events: {enabled: true}}
    resource_attributes: {nixl.telemetry.path: {enabled: true}}
exporters:
  otlp_http: {endpoint: %q, sending_queue: {num_consumers: 1}}
service:
  extensions: [file_storage]
  pipelines: {metrics: {receivers: [nixl_shm], exporters: [otlp_http]}}
`, k.state, fsync, rings, k.to.URL())}}.command(t)
	return k
}

// round starts a Collector and kills it: while it starts, some time later, or while it writes to its
// storage.
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
		if k.rng.IntN(2) == 0 { // otherwise don't wait, because a save is shorter than a timer
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
	k.note(t, c)
}

// last runs a Collector until missing returns "", and stops it normally, so that it exports its last
// totals.
func (k *killer) last(t *testing.T, missing func() string) {
	t.Helper()
	c := launch(t, k.args, nil)
	c.WaitFor(t, ready)
	// The Collector logs this shortly before it handles signals. After another
	// collection, it certainly does.
	k.to.AwaitMore(t)
	must.Eventually(t, missing)
	c.Stop(t, sigterm)
	k.note(t, c)
}

// note records the warnings and errors of a Collector that has ended, and what it hadn't saved.
func (k *killer) note(t *testing.T, c collector) {
	t.Helper()
	k.complaints = append(k.complaints, built.Complaints(c.Process)...)
	k.findUnsaved(t)
}

// compare fails the test unless an agent's totals are exact. Only events that weren't saved may be
// missing.
func (k *killer) compare(t *testing.T, path string, want, got ledger.Series) {
	t.Helper()
	most := k.unsaved[path].most
	if most == 0 {
		mustBe(t, path, want, got)
		return
	}
	for name, n := range want {
		if got[name] > n {
			t.Errorf("%s: %s is %d, want at most %d", filepath.Base(path), name, got[name], n)
		}
	}
	if lost := events(want) - events(got); lost > most {
		t.Errorf("%s: %d events are lost, but at most %d were committed without a checkpoint", filepath.Base(path), lost, most)
	}
}

// check fails the test if points contradict each other. If the test has failed, it logs the
// Collectors' warnings and errors.
func (k *killer) check(t *testing.T) {
	t.Helper()
	for _, wrong := range k.to.Contradictions() {
		t.Error(wrong)
	}
	if !t.Failed() {
		return
	}
	for _, e := range k.complaints {
		// Rings fill up while no Collector runs, and the test truncates files.
		if !strings.Contains(e.Message, "ring was full") && !strings.Contains(e.Error, "was it truncated?") {
			t.Log(e.Line)
		}
	}
}

// awaitWrites waits for a few writes to the storage, for at most a second. A save writes twice: the
// data and the metadata page.
func (k *killer) awaitWrites(t *testing.T) {
	t.Helper()
	w, err := fsnotify.NewWatcher()
	must.OK(t, err)
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

// pass waits for a time. It is used to choose random times of kills.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-t.Context().Done():
	case <-timer.C:
	}
}
