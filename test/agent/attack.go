// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// attacks are what a hostile container does in a directory, n times. They return when the
// container has done it, and may continue on other goroutines.
var attacks = map[string]func(dir string, n int) error{
	"sparse": sparse, "files": files, "rings": rings, "processes": processes, "headers": headers,
	"odd": odd, "names": names, "flood": flood, "full": full, "streams": streams, "stores": stores,
	"mappings": mappings, "directories": directories, "slow": slow, "wait": func(string, int) error { return nil },
}

func attack(what, dir string, n int) error {
	fn := attacks[what]
	if changes[what] != nil {
		fn = func(dir string, n int) error { return change(what, dir, n) }
	}
	if fn == nil {
		return fmt.Errorf("unknown attack %s", what)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	if err := fn(dir, n); err != nil {
		return err
	}
	fmt.Println(0) // ready
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// sparse creates the largest rings of v1, which claim to be full but have no contents.
func sparse(dir string, n int) error {
	for i := range n {
		path := filepath.Join(dir, fmt.Sprint("sparse-", i))
		w, err := ringbuf.Create(path, ringbuf.V1, ringbuf.MaxCapacity)
		if err != nil {
			return err
		}
		before, err1 := start(path)
		err2 := w.Push(ringbuf.NewNamedEvent(ringbuf.CategoryCustom, "x", 1))
		after, err3 := start(path)
		if err := errors.Join(err1, err2, err3); err != nil {
			return err
		}
		for word := 0; word < len(before); word += 8 { // the position that Push has moved
			if binary.LittleEndian.Uint64(before[word:]) == 0 && binary.LittleEndian.Uint64(after[word:]) == 1 {
				full := binary.LittleEndian.AppendUint64(nil, ringbuf.MaxCapacity-1)
				if err := overwrite(path, full, int64(word)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// start returns the header of a ring.
func start(path string) ([]byte, error) {
	b := make([]byte, 64)
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	_, err = io.ReadFull(f, b)
	return b, err
}

func overwrite(path string, b []byte, at int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, at)
	return errors.Join(err, f.Close())
}

// files creates sparse files in the directories of six processes.
func files(dir string, n int) error {
	for i := range 6 {
		sub := filepath.Join(dir, strconv.Itoa(i))
		if err := os.Mkdir(sub, 0o777); err != nil {
			return err
		}
		for j := range n {
			f, err := os.Create(filepath.Join(sub, fmt.Sprint("file-", j)))
			if err != nil {
				return err
			}
			if err := errors.Join(f.Truncate(1<<20), f.Close()); err != nil {
				return err
			}
		}
		if err := spawn("NIXL_TELEMETRY_DIR=" + sub); err != nil {
			return err
		}
	}
	return nil
}

// spawn starts another process of this program, which waits for the end of the same input.
// It keeps no file open, because there may be thousands of processes.
func spawn(env ...string) error {
	cmd := exec.CommandContext(context.Background(), "/proc/self/exe", "-attack=wait")
	cmd.Env, cmd.Stdin = append(os.Environ(), env...), os.Stdin
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}

// processes starts processes that name a directory each.
func processes(dir string, n int) error {
	for i := range n {
		if err := spawn("GOMAXPROCS=1", "NIXL_TELEMETRY_DIR="+filepath.Join(dir, strconv.Itoa(i))); err != nil {
			return err
		}
	}
	return nil
}

// rings creates rings and keeps writing events with random names to them.
func rings(dir string, n int) error {
	var open []*ringbuf.Writer
	for i := range n {
		w, err := ringbuf.Create(filepath.Join(dir, fmt.Sprint("ring-", i)), ringbuf.V1, 64)
		if err != nil {
			return err
		}
		if err := write(w, 32); err != nil {
			return err
		}
		if open = append(open, w); len(open) > 500 { // a process has a limited number of files
			if err := open[0].Close(); err != nil {
				return err
			}
			open = open[1:]
		}
	}
	go every(10*time.Millisecond, func() {
		for _, w := range open {
			_ = write(w, 8) // the ring may be full
		}
	})
	return nil
}

func write(w *ringbuf.Writer, n int) (err error) {
	for range n {
		err = errors.Join(err, w.Push(ringbuf.NewNamedEvent(ringbuf.CategoryCustom, strconv.FormatUint(rand.Uint64(), 36), 1)))
	}
	return err
}

// headers overwrites the headers of rings all the time.
func headers(dir string, n int) error {
	for i := range n {
		path := filepath.Join(dir, fmt.Sprint("header-", i))
		w, err := ringbuf.Create(path, ringbuf.V4, 64)
		if err != nil {
			return err
		}
		b, err := start(path)
		if err != nil {
			return err
		}
		valid := false
		go every(time.Millisecond, func() {
			if valid = !valid; valid {
				_ = overwrite(path, b, 0)
				return
			}
			word := 8 * rand.IntN(len(b)/8)
			_ = overwrite(w.Path(), binary.LittleEndian.AppendUint64(nil, rand.Uint64()>>rand.IntN(64)), int64(word))
		})
	}
	return nil
}

// odd creates everything that isn't a regular file.
func odd(dir string, n int) error {
	for i := range n {
		name := func(kind string) string { return filepath.Join(dir, fmt.Sprint(kind, "-", i)) }
		_ = syscall.Mknod(name("device"), syscall.S_IFCHR|0o666, 1<<8|5) // the container may not be allowed to
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", name("socket"))
		if err != nil {
			return err
		}
		_ = l // stays open
		err = errors.Join(
			syscall.Mkfifo(name("fifo"), 0o666),
			os.Symlink("/proc/1/root/dev/shm/agent", name("link")),
			os.Symlink(name("loop"), name("loop")),
			os.Symlink("../../../../../../dev/zero", name("up")),
			os.MkdirAll(filepath.Join(name("deep"), strings.Repeat("d/", 50)), 0o777),
			os.WriteFile(filepath.Join(dir, fmt.Sprintf("line\nbreak %d \x1b[31m", i)), []byte("no ring"), 0o666),
		)
		if err != nil {
			return err
		}
	}
	return nil
}

// names creates an agent with a new random name every second.
func names(dir string, _ int) error {
	var last *ringbuf.Writer
	go every(time.Second, func() {
		if last != nil {
			_ = last.Close()
		}
		var err error
		if last, err = ringbuf.Create(filepath.Join(dir, "agent-"+strconv.FormatUint(rand.Uint64(), 36)), ringbuf.V1, 64); err == nil {
			_ = write(last, 8)
		}
	})
	return nil
}

// flood writes events to rings with the names of other containers' agents.
func flood(dir string, n int) error {
	for i := range n {
		name := "agent"
		if i > 0 {
			name += fmt.Sprint("-", i)
		}
		w, err := ringbuf.Create(filepath.Join(dir, name), ringbuf.V4, 4096)
		if err != nil {
			return err
		}
		events := slices.Repeat([]ringbuf.Event{ringbuf.NewEvent(ringbuf.TypeTxBytes, 1)}, w.Capacity())
		go every(10*time.Millisecond, func() { _, _ = w.PushBatch(events) })
	}
	return nil
}

// every calls fn repeatedly.
func every(interval time.Duration, fn func()) {
	for range time.Tick(interval) {
		fn()
	}
}
