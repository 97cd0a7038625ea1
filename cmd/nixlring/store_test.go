// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
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
	running = storetest.Create(t, dir, storetest.Config{Agent: "decode-0", Host: "gpu-1", PID: 4711})
	t.Chdir(dir)
	return dir, running
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

func TestLackOfPermissionIsReportedWithTheUser(t *testing.T) {
	here, err := os.Getwd()
	must.OK(t, err)
	dir := t.TempDir()
	storetest.Copy(t, dir)()
	t.Chdir(dir)
	ring, err := ringbuf.Create("ring-0", ringbuf.V4, 16)
	must.OK(t, errors.Join(err, ring.Close(), os.Chmod("ring-0", 0o600), os.Mkdir("closed", 0o700), os.Chmod(".", 0o755)))
	var got strings.Builder
	t.Run("as nobody", func(t *testing.T) {
		becomeNobody(t)
		for _, args := range [][]string{
			{"ls", "."},
			{"inspect", "ring-0"},
			{"inspect", storetest.Real},
			{"read", "ring-0"},
			{"simulate", ".", "--name", "ring"},
			{"ls", "closed"},
			{"top", "closed", "--once"},
			{"replay", "closed/x", "."},
			{"record", "x", "."},
		} {
			r := runWith(t.Context(), world{now: time.Now, proc: "none"}, args...)
			fmt.Fprintf(normalizer{&got}, "$ nixlring %s\n%s%s[exit code %d]\n", strings.Join(args, " "), r.out, r.err, r.code)
		}
	})
	t.Chdir(here)
	golden(t, "permission.txt", got.String())
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
	list := framesOf(t, r)
	if r.code != exitOK || len(list) != 2 {
		t.Fatalf("%+v", r)
	}
	i := slices.IndexFunc(list[1].Agents, func(a diagnose.Agent) bool { return a.Name == "decode-0" })
	a := &list[1].Agents[i]
	before := list[0].Agent(a.ID)
	bytes, took := a.Moved[0].Bytes-before.Moved[0].Bytes, a.Moved[0].Seconds-before.Moved[0].Seconds
	if a.Up != diagnose.Yes || a.Ring != nil || a.Layout != "prometheus_mp_v1" || a.Times.Since(before.Times).Quantile(0.5) <= 0 {
		t.Errorf("%+v", a)
	}
	if speed := float64(bytes) / took; math.Abs(speed/(1<<20/50e-6)-1) > 0.01 {
		t.Errorf("speed %v, want 1 MiB in 50 µs", speed)
	}
}
