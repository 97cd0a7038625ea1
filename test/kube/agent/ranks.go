// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Abstract sockets need no file and are limited to the pod's network namespace.
const mainSocket = "@agent"

func rankSocket(rank string) string { return "@agent-" + rank }

// startup is the time from the start of a container to the start of its agents.
// A real inference server takes longer because it first loads a model.
const startup = 3 * time.Second

// serve starts the ranks. It returns when a rank exits, on SIGTERM, or on the
// command "die".
func serve(ranks int) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ended := make(chan error, ranks+1)
	for rank := range ranks {
		cmd := exec.CommandContext(ctx, "/proc/self/exe", "rank")
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.Env = append(os.Environ(), fmt.Sprintf("LOCAL_RANK=%d", rank))
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			return err
		}
		go func() { ended <- cmd.Wait() }()
	}
	go func() {
		ended <- listen(mainSocket, func(string) (string, error) { return "", errors.New("received the command die") })
	}()
	err := <-ended
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// runRank creates a ring where NIXL would create it, and writes to it on command.
func runRank() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if os.Getenv("NIXL_TELEMETRY_ENABLE") != "y" || os.Getenv("NIXL_TELEMETRY_EXPORTER") != "BUFFER" {
		return errors.New("set NIXL_TELEMETRY_ENABLE=y and NIXL_TELEMETRY_EXPORTER=BUFFER: without them, NIXL creates no ring")
	}
	select { // by then the API server knows the container's ID
	case <-ctx.Done():
		return nil
	case <-time.After(startup):
	}
	rank := os.Getenv("LOCAL_RANK")
	w, err := ringbuf.Create(filepath.Join(os.Getenv("NIXL_TELEMETRY_DIR"), "decode-"+rank), ringbuf.V4, 1<<14)
	if err != nil {
		return err
	}
	defer w.Close()
	written := uint64(0)
	failed := make(chan error, 1)
	go func() {
		failed <- listen(rankSocket(rank), func(command string) (string, error) {
			n := uint64(0)
			if _, err := fmt.Sscanf(command, "write %d", &n); err != nil && command != "ready" {
				return "", err
			}
			for range n {
				if err := transfer(w, written); err != nil {
					return "", err
				}
				written++
			}
			return fmt.Sprintf("rank %s wrote %d", rank, written), nil
		})
	}()
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

// transfer writes the events of one transfer. All transfers have different sizes,
// so a lost or repeated transfer changes the total of bytes.
func transfer(w *ringbuf.Writer, n uint64) error {
	events := []ringbuf.Event{
		ringbuf.NewEvent(ringbuf.TypeXferPostTime, 1+n), ringbuf.NewEvent(ringbuf.TypeXferTime, 1000+n),
		ringbuf.NewEvent(ringbuf.TypeTxBytes, 4096+n), ringbuf.NewEvent(ringbuf.TypeTxRequests, 1),
	}
	if pushed, err := w.PushBatch(events); err != nil || pushed != len(events) {
		return fmt.Errorf("wrote %d of %d events: %w", pushed, len(events), err)
	}
	return nil
}

// listen answers the commands that arrive on a socket, one line each, until a
// command fails.
func listen(socket string, answer func(command string) (string, error)) error {
	l, err := new(net.ListenConfig).Listen(context.Background(), "unix", socket)
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
		if err != nil {
			return err
		}
		fmt.Fprintln(c, text)
		if err := c.Close(); err != nil {
			return err
		}
	}
}

func sendAll(ranks int, command string) error {
	for rank := range ranks {
		if err := send(rankSocket(fmt.Sprint(rank)), command); err != nil {
			return err
		}
	}
	return nil
}

// send sends a command and prints the answer.
func send(socket, command string) error {
	c, err := new(net.Dialer).DialContext(context.Background(), "unix", socket)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := fmt.Fprintln(c, command); err != nil {
		return err
	}
	text, err := bufio.NewReader(c).ReadString('\n')
	fmt.Print(text)
	return err
}
