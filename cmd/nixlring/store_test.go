// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/golden"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/storetest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// becomeNobody takes the file permissions of root from the test.
func becomeNobody(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(func() {
		must.OK(t, syscall.Setfsuid(0))
		runtime.UnlockOSThread()
	})
	must.OK(t, syscall.Setfsuid(65534))
}

func TestLackOfPermissionIsReportedWithTheUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become another user")
	}
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
			{"top", "closed"},
			{"why", "closed/x"},
			{"record", "x", "."},
		} {
			r := runWith(t.Context(), world{now: time.Now, proc: "none"}, args...)
			fmt.Fprintf(normalizer{&got}, "$ nixlring %s\n%s%s[exit code %d]\n", strings.Join(args, " "), r.out, r.err, r.code)
		}
	})
	t.Chdir(here)
	golden.Compare(t, *update, "permission.txt", got.String())
}
