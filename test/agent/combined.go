// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/process"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// These attacks stay within each limit, but aim at what the limits allow together.

// expensive are the events that take longest to count, one kind for each ring: errors, which are passed on to the log of
// the receiver; names that are looked up, because each occurs once; and errors with such names.
var expensive = []struct {
	layout ringbuf.Layout
	event  func() ringbuf.Event
}{
	{ringbuf.V4, func() ringbuf.Event { return ringbuf.NewEvent(ringbuf.TypeErrBackend, 1) }},
	{ringbuf.V1, func() ringbuf.Event { return ringbuf.NewNamedEvent(ringbuf.CategoryCustom, randomName(), 1) }},
	{ringbuf.V1, func() ringbuf.Event { return ringbuf.NewNamedEvent(ringbuf.CategoryError, randomName(), 1) }},
}

// randomName returns bytes that are hardly ever valid UTF-8.
func randomName() string {
	name := make([]byte, 0, 24)
	for len(name) < cap(name) {
		name = append(name, byte(1+rand.IntN(255)))
	}
	return string(name)
}

// full keeps n rings full of expensive events without writing any: it moves their write positions.
func full(dir string, n int) error {
	const slots = 16 << 10
	var files []*os.File
	for i := range n {
		path := filepath.Join(dir, fmt.Sprint("full-", i))
		kind := expensive[i%len(expensive)]
		w, err := ringbuf.Create(path, kind.layout, slots)
		if err != nil {
			return err
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		for i := range slots { // so that the file has no holes
			if i == slots-1 { // the ring is full
				if _, err := f.WriteAt(binary.LittleEndian.AppendUint64(nil, slots-1), 8); err != nil {
					return err
				}
			}
			if err := w.Push(kind.event()); err != nil {
				return err
			}
		}
		files = append(files, f)
	}
	go every(time.Millisecond, func() {
		b := make([]byte, 16) // the write position, and the read position at 8
		for _, f := range files {
			if _, err := f.ReadAt(b, 0); err == nil {
				last := (binary.LittleEndian.Uint64(b[8:]) + slots - 1) % slots
				_, _ = f.WriteAt(binary.LittleEndian.AppendUint64(nil, last), 0)
			}
		}
	})
	return nil
}

// changes are what a container can do to the files of its rings while they are read. Each change holds a lock of the
// file, or of its pages, for as long as it can.
var changes = map[string]func(f *os.File, size int64){
	"beyond": func(f *os.File, size int64) { // the end of the file
		_ = syscall.Fallocate(int(f.Fd()), keepSize, size, 1<<30)
		_ = syscall.Fallocate(int(f.Fd()), keepSize|punchHole, size, 1<<30)
	},
	"holes":     func(f *os.File, size int64) { _ = syscall.Fallocate(int(f.Fd()), keepSize|punchHole, 4096, size) },
	"truncated": func(f *os.File, size int64) { _ = errors.Join(f.Truncate(4096), f.Truncate(size)) },
	"written":   func(f *os.File, _ int64) { _ = f.Sync() },
	"renamed": func(f *os.File, _ int64) {
		_ = errors.Join(os.Rename(f.Name(), f.Name()+".old"), os.Rename(f.Name()+".old", f.Name()))
	},
	"restarted": func(f *os.File, _ int64) { _, _ = f.WriteAt(make([]byte, 16), 0) }, // both positions
}

const keepSize, punchHole = 1, 2 // from linux/falloc.h

// change applies a change to n rings in memory, and to n on a disk. It fills them so seldom that the container may write
// as many events, and through a mapping, which needs no lock.
func change(what, dir string, n int) error {
	const disk, slots = "/rings", 4096 // a directory of the image
	events := slices.Repeat([]ringbuf.Event{ringbuf.NewEvent(ringbuf.TypeTxBytes, 1)}, slots)
	for i := range 2 * n {
		path := filepath.Join([]string{dir, disk}[i%2], fmt.Sprint(what, "-", i))
		w, err := ringbuf.Create(path, ringbuf.V4, slots)
		if err != nil {
			return err
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		info, err := f.Stat()
		if err != nil {
			return err
		}
		go every(20*time.Millisecond, func() {
			if what != "truncated" { // a mapping would fault
				_, _ = w.PushBatch(events)
			}
		})
		go every(time.Millisecond, func() { changes[what](f, info.Size()) })
	}
	return spawn(process.EnvDir + "=" + disk)
}

// streams restarts n agents again and again. Each time, they belong to another service.
func streams(dir string, n int) error {
	if os.Getenv("NIXL_ATTACK_CHILD") != "" {
		for i := range n {
			w, err := ringbuf.Create(filepath.Join(dir, fmt.Sprint("agent-", i)), ringbuf.V1, 64)
			if err != nil {
				return err
			}
			if err := write(w, 4); err != nil {
				return err
			}
		}
		<-time.After(400 * time.Millisecond) // long enough to be seen
		os.Exit(0)
	}
	go func() {
		for i := 0; ; i++ {
			cmd := exec.CommandContext(context.Background(), "/proc/self/exe", "-attack=streams", "-n="+strconv.Itoa(n))
			cmd.Env = append(os.Environ(), "NIXL_ATTACK_CHILD=1", "OTEL_SERVICE_NAME=service-"+strconv.Itoa(i))
			_ = cmd.Run()
		}
	}()
	return nil
}

// stores creates stores of processes that have exited, n at a time, and removes them.
func stores(dir string, n int) error {
	const slots = 21
	b := make([]byte, 752+288*slots)
	copy(b, "NIXLMPS1")
	binary.LittleEndian.PutUint32(b[8:], 1)
	binary.LittleEndian.PutUint32(b[12:], slots)
	pid := uint64(0)
	go every(2*time.Second, func() {
		old, _ := filepath.Glob(filepath.Join(dir, "*.mmap"))
		for range n {
			pid++
			now := time.Now()
			binary.LittleEndian.PutUint64(b[16:], pid)
			binary.LittleEndian.PutUint64(b[24:], uint64(time.Hour)) // updated; after the machine's start, and perhaps in the future
			copy(b[48:], fmt.Sprintf("agent-%d\x00", pid%100))
			_ = os.WriteFile(filepath.Join(dir, fmt.Sprintf("nixl.%d.%d.0.mmap", pid, now.UnixNano())), b, 0o600)
		}
		for _, path := range old {
			_ = os.Remove(path)
		}
	})
	return spawn(process.EnvExporter+"=prometheus_mp", process.EnvMultiprocDir+"="+dir)
}

// mappings starts n processes, each with many mappings that change all the time.
func mappings(_ string, n int) error {
	if os.Getenv("NIXL_ATTACK_CHILD") == "" {
		for range n {
			cmd := exec.CommandContext(context.Background(), "/proc/self/exe", "-attack=mappings")
			cmd.Env, cmd.Stdin = append(os.Environ(), "NIXL_ATTACK_CHILD=1", "GOMAXPROCS=1"), os.Stdin
			if err := cmd.Start(); err != nil {
				return err
			}
		}
		return nil
	}
	name := filepath.Join("/dev/shm", fmt.Sprint(os.Getpid()))
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	const size = 40_000
	if err := f.Truncate(2 * size * 4096); err != nil {
		return err
	}
	for i := range size { // not adjacent in the file, so that the kernel doesn't merge them; it may allow fewer
		_, _ = syscall.Mmap(int(f.Fd()), int64(2*i)*4096, 4096, syscall.PROT_READ, syscall.MAP_SHARED)
	}
	go every(time.Second, func() {
		_, _ = syscall.Mmap(-1, 0, 4096*(1+rand.IntN(64)), syscall.PROT_READ, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	})
	return nil
}

// directories creates files in 64 directories, and replaces them all the time.
func directories(dir string, n int) error {
	for i := range 64 {
		sub := filepath.Join(dir, strconv.Itoa(i))
		if err := os.Mkdir(sub, 0o777); err != nil {
			return err
		}
		for j := range n {
			if err := os.WriteFile(filepath.Join(sub, strconv.Itoa(j)), nil, 0o600); err != nil {
				return err
			}
		}
		if err := spawn("GOMAXPROCS=1", process.EnvDir+"="+sub); err != nil {
			return err
		}
	}
	go every(10*time.Millisecond, func() {
		for range 10 {
			sub := filepath.Join(dir, strconv.Itoa(rand.IntN(64)))
			_ = os.Rename(filepath.Join(sub, strconv.Itoa(rand.IntN(n))), filepath.Join(sub, strconv.Itoa(rand.IntN(n))))
		}
	})
	return nil
}

// slow writes slow transfers and errors to n rings, which the receiver logs.
func slow(dir string, n int) error {
	one := []ringbuf.Event{
		ringbuf.NewEvent(ringbuf.TypeXferPostTime, 1), ringbuf.NewEvent(ringbuf.TypeXferTime, 10_000_000),
		ringbuf.NewEvent(ringbuf.TypeTxBytes, 1), ringbuf.NewEvent(ringbuf.TypeTxRequests, 1),
	}
	events := slices.Repeat(one, 200)
	var errs error
	for i := range n {
		w, err := ringbuf.Create(filepath.Join(dir, fmt.Sprint("slow-", i)), ringbuf.V4, 1024)
		if errs = errors.Join(errs, err); err == nil {
			go every(100*time.Millisecond, func() { _, _ = w.PushBatch(events) })
		}
	}
	return errs
}
