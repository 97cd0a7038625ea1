// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// childVariable makes this program a child of a test: an agent with a ring at a
// path, a process with a number of mappings, or one that scans.
const childVariable = "PROCESS_TEST_CHILD"

func TestMain(m *testing.M) {
	if what := os.Getenv(childVariable); what != "" {
		if err := beChild(what); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func beChild(what string) error {
	n, err := strconv.Atoi(what)
	switch {
	case what == "scan":
		list, err := New(Config{}).Scan(time.Now())
		fmt.Printf("%d found, permission: %v\n", len(list), errors.Is(err, fs.ErrPermission))
		return nil
	case err == nil:
		if err := mapMany(n); err != nil {
			return err
		}
	case what[0] == '/':
		ring, err := ringbuf.Create(what, ringbuf.V4, 4096)
		if err != nil {
			return err
		}
		defer runtime.KeepAlive(ring)
	}
	fmt.Println("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	return nil
}

// mapMany maps a file so often. Mappings that follow each other must differ, or the
// kernel makes one of them.
func mapMany(n int) error {
	f, err := os.Open(os.Args[0])
	if err != nil {
		return err
	}
	defer f.Close()
	for range n {
		if _, err := syscall.Mmap(int(f.Fd()), 0, os.Getpagesize(), syscall.PROT_READ, syscall.MAP_PRIVATE); err != nil {
			return err
		}
	}
	return nil
}

// program is a running program.
type program struct {
	tb  testing.TB
	pid int
	in  io.Writer
	out *bufio.Reader
}

// start starts a program, which ends with its input, and waits for a line of its
// output.
func start(tb testing.TB, cmd *exec.Cmd) *program {
	tb.Helper()
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = in.Close() // Wait returns what came of it
		if err := cmd.Wait(); err != nil {
			tb.Error(err)
		}
	})
	p := &program{tb: tb, pid: cmd.Process.Pid, in: in, out: bufio.NewReader(out)}
	p.wait()
	return p
}

// wait waits for a line of the program's output.
func (p *program) wait() {
	p.tb.Helper()
	if _, err := p.out.ReadString('\n'); err != nil {
		p.tb.Fatal(err)
	}
}

// next lets the program go on.
func (p *program) next() {
	p.tb.Helper()
	if _, err := fmt.Fprintln(p.in); err != nil {
		p.tb.Fatal(err)
	}
	p.wait()
}

// child starts this program as a child that is what childVariable says.
func child(tb testing.TB, what string, env ...string) (pid int) {
	tb.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(tb.Context()), os.Args[0])
	cmd.Env = append(env, childVariable+"="+what)
	return start(tb, cmd).pid
}
