// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// While a reader opens a path, the file there is replaced repeatedly: by a ring, a link
// to another ring, and a FIFO without a writer. The reader opens the ring or returns an
// error. It never follows the link and never blocks on the FIFO.
func TestOpenIsSafeWhileTheFileIsReplaced(t *testing.T) {
	w := newRing(t, V4, 16)
	linked := newRing(t, V4, 16)
	dir := t.TempDir()
	path, spare := filepath.Join(dir, "agent"), filepath.Join(dir, "spare")
	kinds := []func() error{
		func() error { return os.Link(w.Path(), spare) },
		func() error { return os.Symlink(linked.Path(), spare) },
		func() error { return unix.Mkfifo(spare, 0o600) },
	}
	var stop atomic.Bool
	var attacker sync.WaitGroup
	attacker.Go(func() {
		rng := rand.New(rand.NewPCG(3, 4))
		for i := 0; !stop.Load(); i++ {
			err := kinds[rng.IntN(len(kinds))]()
			if err == nil {
				err = os.Rename(spare, path)
			}
			if err == nil && i%5 == 0 { // renaming a link onto its own file leaves both
				err = os.Remove(path)
			}
			if err != nil && !errors.Is(err, fs.ErrExist) {
				t.Error(err)
				return
			}
			if err := os.Remove(spare); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
				return
			}
		}
	})
	_, target := open(t, linked.Path(), Observe).ID()
	opened := 0
	for i := range 20_000 {
		r, err := OpenReader(path, modes()[i%2])
		switch {
		case err == nil:
			opened++
			if _, ino := r.ID(); ino == target {
				t.Error("a link was followed")
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrNotRegular):
			t.Errorf("error %v", err)
		}
		if t.Failed() {
			break
		}
	}
	stop.Store(true)
	attacker.Wait()
	if opened == 0 {
		t.Log("no open found the ring")
	}
}
