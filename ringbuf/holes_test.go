// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// onTmpfs returns a new directory on a tmpfs.
func onTmpfs(t *testing.T) (dir string) {
	t.Helper()
	var fs unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &fs); err != nil || fs.Type != unix.TMPFS_MAGIC {
		t.Skip("needs a tmpfs at /dev/shm")
	}
	dir, err := os.MkdirTemp("/dev/shm", "ringbuf-test-") //nolint:usetesting // t.TempDir may be on a disk
	must.OK(t, err)
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// sparseRing creates a ring file that has only a header.
func sparseRing(t *testing.T, path string, l Layout, capacity int, h Header) {
	t.Helper()
	w, err := Create(path, l, capacity)
	must.OK(t, err)
	must.OK(t, w.Close())
	setPositions(t, path, h.WritePos, h.ReadPos)
}

// setPositions changes the positions in a header with write(2), which allocates no other page.
func setPositions(t *testing.T, path string, write, read uint64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must.OK(t, err)
	defer f.Close()
	for at, position := range map[int]uint64{offWritePos: write, offReadPos: read} {
		if _, err := f.WriteAt(binary.LittleEndian.AppendUint64(nil, position), int64(at)); err != nil {
			t.Fatal(err)
		}
	}
}

// allocated returns the number of allocated bytes of a file.
func allocated(t *testing.T, path string) int64 {
	t.Helper()
	var st unix.Stat_t
	must.OK(t, unix.Stat(path, &st))
	return st.Blocks * 512
}

func wantHole(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, ErrHole) || !errors.Is(err, ErrInvalid) {
		t.Errorf("%s: error %v, want an ErrHole", what, err)
	}
}

func TestSparseRingThatClaimsEventsAllocatesNothing(t *testing.T) {
	dir := onTmpfs(t)
	headers := map[string]Header{
		"full":         {WritePos: 1<<16 - 1},
		"full, later":  {WritePos: 999, ReadPos: 1000},
		"wrapped":      {WritePos: 0, ReadPos: 1000},
		"last slot":    {WritePos: 0, ReadPos: 1<<16 - 1},
		"one far slot": {WritePos: 30001, ReadPos: 30000},
	}
	sizes := make(map[string]int64)
	for _, l := range Layouts() {
		for name, h := range headers {
			path := filepath.Join(dir, l.String()+", "+name)
			sparseRing(t, path, l, 1<<16, h)
			sizes[path] = allocated(t, path)
		}
	}
	for path, before := range sizes {
		for _, mode := range modes() {
			r, err := OpenReader(path, mode)
			wantHole(t, fmt.Sprintf("%s in mode %v", path, mode), err)
			if err == nil {
				_, err := tryRead(r, 0)
				t.Errorf("read: %v", err)
				_ = r.Close()
			}
			if after := allocated(t, path); after != before {
				t.Errorf("%s in mode %v: %d bytes are allocated, %d before", path, mode, after, before)
			}
		}
	}
	if mapped := fileBytes(t, "/proc/self/maps"); bytes.Contains(mapped, []byte(dir)) {
		t.Errorf("refused rings are still mapped:\n%s", mapped)
	}
}

func TestHeaderThatClaimsHolesLaterAllocatesNothing(t *testing.T) {
	for _, mode := range modes() {
		t.Run(mode.String(), func(t *testing.T) {
			path := filepath.Join(onTmpfs(t), "agent")
			w := create(t, path, V1, 1<<16)
			r := open(t, path, mode)
			push(t, w, 0, 100)
			if got := len(read(t, r)); got != 100 {
				t.Fatalf("%d events, want 100", got)
			}
			before := allocated(t, path)
			for _, write := range []uint64{1<<16 - 1, 30000, 200, 50, 0} {
				setPositions(t, path, write, 0)
				events, err := tryRead(r, 0)
				if len(events) > 0 || err == nil && write > 100 {
					t.Errorf("write position %d: %d events, error %v", write, len(events), err)
				}
				if after := allocated(t, path); after != before {
					t.Fatalf("write position %d: %d bytes are allocated, %d before", write, after, before)
				}
			}
			_, err := r.Fingerprint(20_000)
			wantHole(t, "fingerprint", err)
			if after := allocated(t, path); after != before {
				t.Errorf("fingerprint: %d bytes are allocated, %d before", after, before)
			}
		})
	}
}

func TestHolesThatAreMadeLaterAreFoundInTheNextLap(t *testing.T) {
	path := filepath.Join(onTmpfs(t), "agent")
	const capacity = 1 << 16
	w := create(t, path, V4, capacity)
	r := open(t, path, Consume)
	advance(t, w, r, capacity-1)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must.OK(t, err)
	defer f.Close()
	must.OK(t, unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 4096, V4.FileSize(capacity)-4096))
	before := allocated(t, path)
	setPositions(t, path, capacity-2, capacity-1)
	_, err = tryRead(r, 0)
	wantHole(t, "read", err)
	if after := allocated(t, path); after != before {
		t.Errorf("%d bytes are allocated, %d before", after, before)
	}
}

// The kernel locks the file while it allocates and frees space, which takes a second per gigabyte.
func TestRingWithMoreSpaceThanItsSizeIsRefused(t *testing.T) {
	path := filepath.Join(onTmpfs(t), "agent")
	const capacity = 1 << 10
	w := create(t, path, V4, capacity)
	r := open(t, path, Consume)
	advance(t, w, r, capacity-1)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must.OK(t, err)
	defer f.Close()
	for _, space := range []struct {
		bytes int64
		want  error
	}{{hugePage, nil}, {hugePage + 4096, ErrInvalid}} {
		must.OK(t, unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, space.bytes))
		r.extent.left = 0
		must.OK(t, w.Push(NewEvent(TypeTxBytes, 1)))
		_, readErr := tryRead(r, 0)
		again, openErr := OpenReader(path, Observe)
		for _, err := range []error{readErr, openErr} {
			if !errors.Is(err, space.want) || (err == nil) != (space.want == nil) {
				t.Errorf("with %d bytes: error %v, want %v", space.bytes, err, space.want)
			}
		}
		if openErr == nil {
			must.OK(t, again.Close())
		}
	}
}

// An agent writes the pages of its ring one after the other. Reading them needs no system
// call after the first lap.
func TestSteadyStateLooksForNoHoles(t *testing.T) {
	path := filepath.Join(onTmpfs(t), "agent")
	const capacity = 4096
	w := create(t, path, V4, capacity)
	r := open(t, path, Consume)
	file, ok := r.backing.(fileBacking)
	if !ok {
		t.Fatal("the ring has no file")
	}
	calls := &countStats{fileBacking: file}
	r.backing = calls
	for range 16 {
		advance(t, w, r, capacity/16)
	}
	if calls.stats < 16 {
		t.Errorf("the size of the file was determined %d times in the first lap", calls.stats)
	}
	calls.stats = 0
	for range 20 {
		advance(t, w, r, 10)
	}
	if calls.stats > 2 { // of the last slots, and of what is allocated
		t.Errorf("the size of the file was determined %d times in 20 reads", calls.stats)
	}
}

// A disk that fails is no reason to treat holes as events, or a slot of zeros as one.
func TestFileThatCantBeCheckedIsNotRead(t *testing.T) {
	for what, tc := range map[string]struct {
		broken

		reads int // before that
	}{"allocated bytes": {broken{size: unix.EIO}, 0}, "size": {broken{size: unix.EIO}, 1}} {
		w := create(t, filepath.Join(onTmpfs(t), "agent"), V4, 16)
		r := open(t, w.Path(), Consume)
		advance(t, w, r, tc.reads)
		must.OK(t, w.Push(NewEvent(TypeTxBytes, 0)))
		tc.fileBacking, _ = r.backing.(fileBacking)
		r.backing = tc.broken
		if got, err := tryRead(r, 0); len(got) > 0 || !errors.Is(err, unix.EIO) {
			t.Errorf("%s: %d events, error %v", what, len(got), err)
		}
	}
}

type broken struct {
	fileBacking
	size error
}

func (b broken) Stat() (FileState, error) {
	state, err := b.fileBacking.Stat()
	return state, errors.Join(b.size, err)
}

type countStats struct {
	fileBacking
	stats int
}

func (c *countStats) Stat() (FileState, error) {
	c.stats++
	return c.fileBacking.Stat()
}
