// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package interop

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
)

// TestMain removes the programs that the tests have built.
func TestMain(m *testing.M) {
	code := m.Run()
	if bin.dir != "" {
		if err := os.RemoveAll(bin.dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(code)
}

// bin is the directory of the programs, which are built once for all tests.
var bin struct {
	sync.Once

	dir string
	err error
}

// program returns the path of a C++ program. The first call builds all of them.
// Without a compiler, it skips the test.
func program(t *testing.T, name string) string {
	t.Helper()
	cxx := cmp.Or(os.Getenv("CXX"), "g++")
	if _, err := exec.LookPath(cxx); err != nil {
		if os.Getenv("INTEROP_EVENTS") != "" {
			t.Fatalf("INTEROP_EVENTS is set, but there is no C++ compiler: %v", err)
		}
		t.Skipf("no C++ compiler (%v): install g++ 12 or newer, or set CXX", err)
	}
	bin.Do(func() {
		if bin.dir, bin.err = os.MkdirTemp("", "interop-*"); bin.err != nil { //nolint:usetesting // for all tests, not for this one
			return
		}
		for _, name := range []string{"producer", "consumer", "store"} {
			source := filepath.Join(ringtest.Root(t), "testdata", "interop", name+".cpp")
			build := exec.CommandContext(t.Context(), cxx, "-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror",
				"-o", filepath.Join(bin.dir, name), source, "-pthread")
			if out, err := build.CombinedOutput(); err != nil {
				bin.err = fmt.Errorf("%s: %w\n%s", build, err, out)
				return
			}
		}
	})
	if bin.err != nil {
		t.Fatal(bin.err)
	}
	return filepath.Join(bin.dir, name)
}

// events returns how many events to push through a ring of the largest capacity.
func events(t *testing.T) uint64 {
	t.Helper()
	if s := os.Getenv("INTEROP_EVENTS"); s != "" {
		n, err := strconv.ParseUint(s, 10, numberBits)
		if err != nil {
			t.Fatalf("INTEROP_EVENTS: %v", err)
		}
		return n
	}
	return 200_000
}

// process is a running C++ program.
type process struct {
	cmd   *exec.Cmd
	ended chan report // gets the program's report, if any, and is closed when the program exits
	err   error       // why there is no report; valid once ended is closed
}

// report is the last line that a program prints.
type report struct {
	Pushed, Popped, Waits uint64
	Seconds               float64
}

// start starts a program and waits until it prints "ready".
func start(t *testing.T, name string, args ...any) *process {
	t.Helper()
	text := make([]string, 0, len(args))
	for _, a := range args {
		text = append(text, fmt.Sprint(a))
	}
	p := &process{cmd: exec.CommandContext(t.Context(), program(t, name), text...), ended: make(chan report, 1)}
	var stderr strings.Builder
	p.cmd.Stderr = &stderr
	pipe, err := p.cmd.StdoutPipe()
	must.OK(t, err)
	must.OK(t, p.cmd.Start())
	out := bufio.NewReader(pipe)
	if line, err := out.ReadString('\n'); line != "ready\n" {
		t.Fatalf("%s printed %q: %v\n%s", p.cmd, line, errors.Join(err, p.cmd.Wait()), stderr.String())
	}
	go func() {
		defer close(p.ended)
		var r report
		line, err := out.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, &r)
		}
		if err = errors.Join(err, p.cmd.Wait()); err != nil {
			p.err = fmt.Errorf("%s printed %q: %w\n%s", p.cmd, line, err, stderr.String())
			return
		}
		p.ended <- r
	}()
	return p
}

// finish waits until the program exits and returns its report.
func (p *process) finish(t *testing.T) report {
	t.Helper()
	r, ok := <-p.ended
	if !ok {
		t.Fatal(p.err)
	}
	return r
}
