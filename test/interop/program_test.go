// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package interop

import (
	"bufio"
	"cmp"
	"context"
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

	"github.com/nixl-otel/nixl-otel/internal/ringtest"
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

// bin is where the programs are built, once for all tests.
var bin struct {
	sync.Once

	dir string
	err error
}

// program builds the C++ programs, unless that was done, and returns the path
// of one. Without a compiler the test is skipped.
func program(t *testing.T, name string) string {
	t.Helper()
	cxx := cmp.Or(os.Getenv("CXX"), "g++")
	if _, err := exec.LookPath(cxx); err != nil {
		if os.Getenv("INTEROP_EVENTS") != "" {
			t.Fatalf("no C++ compiler: %v", err)
		}
		t.Skipf("no C++ compiler (%v): install g++ 12 or newer, or name one in CXX", err)
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

// events is how many events go through a ring at the default capacity.
func events(t *testing.T) uint64 {
	t.Helper()
	if s := os.Getenv("INTEROP_EVENTS"); s != "" {
		n, err := strconv.ParseUint(s, 10, numberBits)
		if err != nil {
			t.Fatalf("INTEROP_EVENTS: %v", err)
		}
		return n
	}
	if testing.Short() {
		return 200_000
	}
	return 2_000_000
}

// process is one of the programs, running.
type process struct {
	cmd   *exec.Cmd
	ended chan report // gets what the program prints at its end, then is closed
	err   error       // why there was nothing; to be read when ended is closed
}

// report is what a program prints at its end.
type report struct {
	Pushed, Dropped, Popped, Waits uint64
	Seconds                        float64
}

// start starts a program and waits until it says that it is ready.
func start(t *testing.T, name string, args ...any) *process {
	t.Helper()
	p, err := launch(t.Context(), program(t, name), args...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// launch is start for a goroutine. The end of ctx ends the program.
func launch(ctx context.Context, program string, args ...any) (*process, error) {
	text := make([]string, 0, len(args))
	for _, a := range args {
		text = append(text, fmt.Sprint(a))
	}
	p := &process{cmd: exec.CommandContext(ctx, program, text...), ended: make(chan report, 1)}
	var said strings.Builder
	p.cmd.Stderr = &said
	pipe, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	out := bufio.NewReader(pipe)
	if line, err := out.ReadString('\n'); line != "ready\n" {
		return nil, fmt.Errorf("%s says %q: %w\n%s", p.cmd, line, errors.Join(err, p.cmd.Wait()), said.String())
	}
	go func() {
		defer close(p.ended)
		var r report
		line, err := out.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, &r)
		}
		if err = errors.Join(err, p.cmd.Wait()); err != nil {
			p.err = fmt.Errorf("%s says %q: %w\n%s", p.cmd, line, err, said.String())
			return
		}
		p.ended <- r
	}()
	return p, nil
}

// finish waits for the program's end and returns its report.
func (p *process) finish(t *testing.T) report {
	t.Helper()
	r, ok := <-p.ended
	if !ok {
		t.Fatal(p.err)
	}
	return r
}
