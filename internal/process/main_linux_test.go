// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// childVariable makes the test binary a child process. If the value is a path, the child
// creates a ring there; if it is a number, the child maps as many files; if it is
// "scan", the child scans. With any other value, the child only waits.
const childVariable = "PROCESS_TEST_CHILD"

func TestMain(m *testing.M) {
	if what := os.Getenv(childVariable); what != "" {
		if err := runChild(what); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func runChild(what string) error {
	n, err := strconv.Atoi(what)
	switch {
	case what == "scan":
		list, err := New(Config{}).Scan(time.Now(), false)
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

// mapMany maps a file n times. All mappings have the same offset, because the kernel
// merges adjacent mappings of consecutive parts.
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

// child starts the test binary as a child process that runs until the test ends; see
// childVariable.
func child(tb testing.TB, what string, env ...string) (pid int) {
	tb.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(tb.Context()), os.Args[0])
	cmd.Env, cmd.Stderr = append(env, childVariable+"="+what), os.Stderr
	out, err := cmd.StdoutPipe()
	must.OK(tb, err)
	run(tb, cmd)
	_, err = bufio.NewReader(out).ReadString('\n')
	must.OK(tb, err)
	return cmd.Process.Pid
}

// run starts a program that ends when its input is closed, at the end of the test.
func run(tb testing.TB, cmd *exec.Cmd) {
	tb.Helper()
	in, err := cmd.StdinPipe()
	must.OK(tb, err)
	must.OK(tb, cmd.Start())
	tb.Cleanup(func() {
		_ = in.Close() // Wait returns any error of the process
		if err := cmd.Wait(); err != nil {
			tb.Error(err)
		}
	})
}
