// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package engine

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/discover"
	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// layerAgent is an agent whose ring is in a container's own layer. Its process is the only one
// in proc, apart from init.
type layerAgent struct {
	t    *testing.T
	dir  string
	proc string
	in   io.WriteCloser
	out  *bufio.Reader
	cmd  *exec.Cmd
	sent int
}

func startInLayer(t *testing.T, dir string) *layerAgent {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = []string{ringVariable + "=" + filepath.Join(dir, "agent"), "NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_DIR=" + dir, "LOCAL_RANK=3"}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must.OK(t, err)
	out, err := cmd.StdoutPipe()
	must.OK(t, err)
	must.OK(t, cmd.Start())
	a := &layerAgent{t: t, dir: dir, proc: t.TempDir(), in: in, out: bufio.NewReader(out), cmd: cmd}
	for link, to := range map[string]string{"self": "self", "1": "1", strconv.Itoa(cmd.Process.Pid): strconv.Itoa(cmd.Process.Pid)} {
		must.OK(t, os.Symlink("/proc/"+to, filepath.Join(a.proc, link)))
	}
	a.line()
	return a
}

func (a *layerAgent) line() {
	a.t.Helper()
	if _, err := a.out.ReadString('\n'); err != nil {
		a.t.Fatal(err)
	}
}

// transfer writes the events of one transfer.
func (a *layerAgent) transfer() {
	a.t.Helper()
	if _, err := fmt.Fprintln(a.in); err != nil {
		a.t.Fatal(err)
	}
	a.line()
	a.sent++
}

func (a *layerAgent) exit() {
	a.t.Helper()
	_ = a.in.Close() // the agent ends
	must.OK(a.t, a.cmd.Wait())
	must.OK(a.t, os.Remove(filepath.Join(a.proc, strconv.Itoa(a.cmd.Process.Pid))))
}

// await collects until the agent is reported as wanted, and fails if it is reported as exited
// before.
func (a *layerAgent) await(h *Engine, what string, done func(drain.Snapshot) bool) {
	a.t.Helper()
	must.Eventually(a.t, func() string {
		c, err := h.Collect(a.t.Context(), false)
		must.OK(a.t, err)
		h.Delivered(c)
		for _, s := range c.Snapshots {
			if done(s) {
				return ""
			}
			if s.Up == drain.UpNo {
				a.t.Fatalf("the agent, which is running, is reported as exited (%s)", what)
			}
		}
		return fmt.Sprintf("%d agents are reported, but not %s; refused are %v", len(c.Snapshots), what, h.State().Refused)
	})
}

// awaitAll waits until all transfers are reported.
func (a *layerAgent) awaitAll(h *Engine) {
	a.t.Helper()
	a.await(h, fmt.Sprintf("%d transfers", a.sent), func(s drain.Snapshot) bool {
		if s.Totals.Restarts() != 0 {
			a.t.Fatal("a restart is reported")
		}
		return s.Totals.Requests(0).Sum.Int64() == int64(a.sent)
	})
}

// NIXL closes the file after it has mapped it. On overlayfs, the kernel then answers as if no
// process had the file open.
func TestAgentInContainersLayerIsReportedWhileItRuns(t *testing.T) {
	const stale = 2 * time.Second
	for upper, dir := range ringtest.Overlays(t) {
		for _, discovered := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/discovered=%v", upper, discovered), func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(dir, strconv.FormatBool(discovered))
				must.OK(t, os.Mkdir(dir, 0o755))
				a := startInLayer(t, dir)
				cfg := Config{StaleAfter: stale, RunInterval: 10 * time.Millisecond}
				if discovered {
					cfg.Processes = &discover.Processes{Proc: a.proc, Interval: 200 * time.Millisecond, EnvAttributes: map[string]string{"LOCAL_RANK": semconv.LocalRank}}
				} else {
					cfg.Directories = []string{dir}
				}
				h, err := New(cfg)
				must.OK(t, err)
				must.OK(t, h.Start(nil))
				for range 15 {
					a.transfer()
					a.awaitAll(h)
				}
				idle := time.Now()
				for now := range time.Tick(stale / 10) {
					if now.Sub(idle) > stale+time.Second {
						break
					}
					c, err := h.Collect(t.Context(), false)
					must.OK(t, err)
					h.Delivered(c)
				}
				a.transfer()
				a.awaitAll(h)
				if discovered {
					a.await(h, "up and with its rank", func(s drain.Snapshot) bool {
						rank, _ := s.Resource.Value(semconv.LocalRank)
						return s.Up == drain.UpYes && rank.String() == "3"
					})
				}
				a.exit()
				if discovered {
					a.await(h, "exited", func(s drain.Snapshot) bool { return s.Up == drain.UpNo })
				}
				must.OK(t, h.Stop(context.Background()))
			})
		}
	}
}
