// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/nixl-otel/nixl-otel/test/internal/title"
)

// socket returns an abstract socket, which needs no file. The containers of a pod have one network namespace.
func socket() string { return "@agent-" + os.Getenv("OTEL_SERVICE_NAME") }

// worker is the process of a rank.
type worker struct {
	process *os.Process
	in      *os.File
	out     *bufio.Reader
}

// start starts a worker. os/exec would drop the empty variables.
func (o options) start(rank int) (w worker, err error) {
	env := os.Environ()
	if o.title == "" {
		env = append(env, fmt.Sprint("LOCAL_RANK=", rank))
	}
	if o.parent != "" { // a child that is forked has the memory of its parent
		env = slices.Repeat([]string{""}, 2000)
	}
	in, theirIn, err1 := os.Pipe()
	theirOut, out, err2 := os.Pipe()
	if err := errors.Join(err1, err2); err != nil {
		return w, err
	}
	defer in.Close()
	defer out.Close()
	args := append(slices.Clone(os.Args), "-dir="+o.dir, fmt.Sprint("-slots=", o.slots), fmt.Sprint("-rank=", rank))
	w = worker{in: theirIn, out: bufio.NewReader(theirOut)}
	w.process, err = os.StartProcess("/proc/self/exe", args, &os.ProcAttr{
		Env: env, Files: []*os.File{in, out, os.Stderr}, Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	})
	return w, err
}

// count returns how many events the worker has written.
func (w worker) count() (int, error) {
	line, err := w.out.ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("process %d: %w", w.process.Pid, err)
	}
	return strconv.Atoi(strings.TrimSpace(line))
}

// serve is the process of an engine.
func (o options) serve() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if o.parent != "" {
		if err := title.Set(o.parent); err != nil {
			return err
		}
	}
	var workers []worker
	for rank := range o.ranks {
		w, err := o.start(rank)
		if err != nil {
			return err
		}
		workers = append(workers, w)
	}
	all := func(do func(worker) error) (text string, err error) {
		sum := 0
		for _, w := range workers {
			err = errors.Join(err, do(w))
		}
		for _, w := range workers {
			n, failed := w.count()
			sum, err = sum+n, errors.Join(err, failed)
		}
		return strconv.Itoa(sum), err
	}
	command := func(line string) (string, error) {
		return all(func(w worker) error { _, err := fmt.Fprintln(w.in, line); return err })
	}
	text, err := all(func(worker) error { return nil })
	fmt.Println(text)
	if err != nil {
		return err
	}
	if o.listen {
		ended := make(chan error, 1)
		go func() { ended <- listen(command) }()
		select {
		case <-ctx.Done():
			for _, w := range workers { // otherwise, one may see that its input ends, and write once more
				_ = w.process.Kill()
			}
			return nil
		case err := <-ended:
			return err
		}
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); fmt.Println(text) {
		if text, err = command(lines.Text()); err != nil {
			return err
		}
	}
	text, err = all(func(w worker) error { return w.in.Close() })
	fmt.Println(text)
	return err
}

// listen answers the commands that arrive on the socket, one line each, until one fails.
func listen(answer func(command string) (string, error)) error {
	l, err := new(net.ListenConfig).Listen(context.Background(), "unix", socket())
	if err != nil {
		return err
	}
	defer l.Close()
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		line, err := bufio.NewReader(c).ReadString('\n')
		if err != nil {
			return err
		}
		text, err := answer(strings.TrimSpace(line))
		if err != nil { // a worker exits when a command isn't a number
			return err
		}
		fmt.Fprintln(c, text)
		if err := c.Close(); err != nil {
			return err
		}
	}
}

// send sends a command to the engine in this container, and prints the answer.
func send(command string) error {
	c, err := new(net.Dialer).DialContext(context.Background(), "unix", socket())
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := fmt.Fprintln(c, command); err != nil {
		return err
	}
	text, err := io.ReadAll(c)
	fmt.Print(string(text))
	return err
}
