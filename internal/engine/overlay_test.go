// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/discover"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// ringVariable makes the test binary an agent with a ring at the variable's value. It writes a
// transfer for each line of its input.
const ringVariable = "BENCH_RING"

// runAgent keeps a ring until standard input ends.
func runAgent(path string) {
	w, err := ringbuf.Create(path, ringbuf.V4, 4096)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("ready")
	transfer := []ringbuf.Event{
		ringbuf.NewEvent(ringbuf.TypeXferPostTime, 10), ringbuf.NewEvent(ringbuf.TypeXferTime, 50),
		ringbuf.NewEvent(ringbuf.TypeTxBytes, 4096), ringbuf.NewEvent(ringbuf.TypeTxRequests, 1),
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		_, _ = w.PushBatch(transfer) // the reader finds that events are missing
		fmt.Println("written")
	}
	_ = w.Close()
}

// agentProcess is a process of the test binary that is an agent.
type agentProcess struct {
	tb  testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startAgent starts an agent with a ring in a directory.
func startAgent(tb testing.TB, dir string) *agentProcess {
	tb.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(tb.Context()), os.Args[0])
	cmd.Env = append(os.Environ(), ringVariable+"="+filepath.Join(dir, "bench-agent"), "GOMAXPROCS=1",
		"NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_DIR="+dir, "LOCAL_RANK=3")
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	must.OK(tb, errors.Join(err1, err2, cmd.Start()))
	a := &agentProcess{tb, cmd, in, bufio.NewReader(out)}
	tb.Cleanup(a.exit)
	a.answer()
	return a
}

// answer waits until the agent has done what it was asked.
func (a *agentProcess) answer() {
	a.tb.Helper()
	_, err := a.out.ReadString('\n')
	must.OK(a.tb, err)
}

// transfer writes the events of one transfer.
func (a *agentProcess) transfer() {
	a.tb.Helper()
	_, err := fmt.Fprintln(a.in)
	must.OK(a.tb, err)
	a.answer()
}

// exit ends the agent. It may be called more than once.
func (a *agentProcess) exit() {
	_ = a.in.Close()
	_ = a.cmd.Wait()
}

// NIXL closes the file after it has mapped it. On overlayfs, the kernel then answers as if no
// process had the file open.
func TestAgentInContainersLayerIsReportedWhileItRuns(t *testing.T) {
	const stale = 2 * time.Second
	for upper, dir := range ringtest.Overlays(t) {
		for _, discovered := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/discovered=%v", upper, discovered), func(t *testing.T) {
				t.Parallel()
				dir, proc := filepath.Join(dir, strconv.FormatBool(discovered)), t.TempDir()
				must.OK(t, os.Mkdir(dir, 0o755))
				a, sent := startAgent(t, dir), int64(0)
				pid := strconv.Itoa(a.cmd.Process.Pid)
				for _, name := range []string{"self", "1", pid} { // it sees no others
					must.OK(t, os.Symlink("/proc/"+name, filepath.Join(proc, name)))
				}
				cfg := Config{StaleAfter: stale, RunInterval: 10 * time.Millisecond, Directories: []string{dir}}
				if discovered {
					cfg.Directories = nil
					cfg.Processes = &discover.Processes{Proc: proc, Interval: 200 * time.Millisecond}
				}
				e, err := New(cfg)
				must.OK(t, err)
				must.OK(t, e.Start(nil))
				collect := func() []Snapshot {
					c, err := e.Collect(t.Context(), false)
					must.OK(t, err)
					e.Delivered(c)
					return c.Snapshots
				}
				await := func(what string, done func(Snapshot) bool) {
					t.Helper()
					must.Eventually(t, func() string {
						list := collect()
						for _, s := range list {
							if done(s) {
								return ""
							}
							if s.Up == UpNo || s.Totals.Restarts() != 0 {
								t.Fatalf("the agent, which is running, is reported as exited or restarted (%s)", what)
							}
						}
						return fmt.Sprintf("%d agents are reported, but not %s; refused are %v", len(list), what, e.State().Refused)
					})
				}
				transfer := func() {
					t.Helper()
					a.transfer()
					sent++
					await(fmt.Sprintf("%d transfers", sent), func(s Snapshot) bool { return s.Totals.Requests(0).Sum.Int64() == sent })
				}
				for range 15 {
					transfer()
				}
				for idle := time.Now(); time.Since(idle) < stale+time.Second; <-time.After(stale / 10) {
					collect()
				}
				transfer()
				if discovered {
					await("up and with its rank", func(s Snapshot) bool {
						rank, _ := s.Resource.Value(semconv.LocalRank)
						return s.Up == UpYes && rank.String() == "3"
					})
					a.exit()
					must.OK(t, os.Remove(filepath.Join(proc, pid)))
					await("exited", func(s Snapshot) bool { return s.Up == UpNo })
				}
				must.OK(t, e.Stop(context.Background()))
			})
		}
	}
}
