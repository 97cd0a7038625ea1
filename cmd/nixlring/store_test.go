// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"encoding/json"
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
	must.OK(t, errors.Join(err, ring.Close(), os.Chmod("ring-0", 0o600)))
	var got strings.Builder
	t.Run("as nobody", func(t *testing.T) {
		becomeNobody(t)
		for _, args := range [][]string{{"ls", "."}, {"inspect", "ring-0"}, {"inspect", storetest.Real}, {"read", "ring-0"}, {"simulate", ".", "--name", "ring"}} {
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
