// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package procs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/mpstore"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/storetest"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestReadStoreReturnsTheProcessAndItsTotals(t *testing.T) {
	dir := t.TempDir()
	exit := storetest.Copy(t, dir)
	path := filepath.Join(dir, storetest.Real)
	want := storetest.Read(t)
	for _, alive := range []Alive{Yes, No} {
		if alive == No {
			exit()
		}
		f, err := ReadStore(path)
		must.OK(t, err)
		p := f
		if f.Alive != alive || f.Agent != want.Agent || p.Host != want.Host || p.LocalRank != want.LocalRank || p.PID != want.PID ||
			p.Start.UnixNano() != 1795211775677999379 {
			t.Errorf("%+v, want %+v", f, want)
		}
		got := map[string]int64{
			"agent_tx_bytes":        p.Totals.Size(tally.Transmit).Total().Int64(),
			"agent_rx_requests_num": p.Totals.Requests(tally.Receive).Sum.Int64(),
			"agent_xfer_time":       p.Totals.Duration().Total().Int64(),
			"not_found":             p.Totals.Errors(ringbuf.TypeErrNotFound).Sum.Int64(),
		}
		for name, n := range got {
			if n != int64(want.Counters[name]) {
				t.Errorf("%s = %d, want %d", name, n, want.Counters[name])
			}
		}
		if d := cmp.Diff(want.Hist["agent_xfer_time"].Buckets, p.Totals.Duration().Counts()); d != "" {
			t.Errorf("buckets (-want +got)\n%s", d)
		}
	}
}

func TestReadStoreLeavesTheStoreUnchangedAndUnlocked(t *testing.T) {
	dir := t.TempDir()
	storetest.Copy(t, dir)()
	path := filepath.Join(dir, storetest.Real)
	before, err := os.Stat(path)
	must.OK(t, err)
	if _, err := ReadStore(path); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(path)
	if err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("modified at %v, before at %v (%v)", after.ModTime(), before.ModTime(), err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != string(storetest.Bytes(t)) {
		t.Errorf("the store has changed (%v)", err)
	}
	f, err := os.Open(path)
	must.OK(t, err)
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Errorf("lock: %v", err)
	}
}

// A FIFO would block an ordinary open.
func TestReadStoreReadsOnlyRegularFilesWithStoreNames(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	storetest.Copy(t, dir)
	for _, err := range []error{
		os.Symlink(storetest.Real, at("nixl.1.1.1.mmap")),
		syscall.Mkfifo(at("nixl.2.2.2.mmap"), 0o600),
		os.Mkdir(at("nixl.3.3.3.mmap"), 0o700),
		os.WriteFile(at("copy"), storetest.Bytes(t), 0o600),
	} {
		must.OK(t, err)
	}
	for name, want := range map[string]error{
		"nixl.1.1.1.mmap": ringbuf.ErrNotRegular, "nixl.2.2.2.mmap": ringbuf.ErrNotRegular, "nixl.3.3.3.mmap": ringbuf.ErrNotRegular,
		"nixl.4.4.4.mmap": fs.ErrNotExist, "copy": mpstore.ErrInvalid,
	} {
		if f, err := ReadStore(at(name)); f != nil || !errors.Is(err, want) {
			t.Errorf("%s: %+v, %v; want %v", name, f, err, want)
		}
	}
}

// Reading a mapped file that shrinks would crash.
func TestReadStoreReturnsAnErrorIfTheStoreShrinks(t *testing.T) {
	path := filepath.Join(t.TempDir(), storetest.Real)
	must.OK(t, os.WriteFile(path, storetest.Bytes(t), 0o600))
	stop, stopped := make(chan struct{}), make(chan error)
	go func() {
		for {
			select {
			case <-stop:
				stopped <- os.Truncate(path, 1024)
				return
			default:
			}
			if err := errors.Join(os.Truncate(path, 0), os.Truncate(path, int64(storetest.Size(21)))); err != nil {
				t.Error(err)
			}
		}
	}()
	for range 500 {
		if _, err := ReadStore(path); err != nil && !errors.Is(err, mpstore.ErrInvalid) {
			t.Error(err)
		}
	}
	close(stop)
	must.OK(t, <-stopped)
	if _, err := ReadStore(path); !errors.Is(err, mpstore.ErrInvalid) {
		t.Errorf("truncated: %v", err)
	}
}
