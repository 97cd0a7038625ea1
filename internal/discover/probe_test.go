// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// probeResults returns the probe results in the messages, in order.
func probeResults(messages []drain.Message) (results []string) {
	for _, m := range messages {
		if m, ok := m.(drain.Attended); ok {
			results = append(results, map[bool]string{true: "open", false: "exited"}[m.Open && m.Known])
		}
	}
	return results
}

func TestProbeDetectsExitAndRestart(t *testing.T) {
	for _, mode := range []ringbuf.Mode{ringbuf.Consume, ringbuf.Observe} {
		t.Run(mode.String(), func(t *testing.T) {
			x := newFixture(t)
			ring := x.ring("agent", ringbuf.V4, 8)
			d := x.directory(func(c *Config) { c.Mode = mode })
			x.round(d)
			x.round(d)
			// A ring is probed when it is opened, and again by each walk.
			if got := probeResults(x.owner.takeMessages()); !slices.Equal(got, []string{"open", "open", "open"}) {
				t.Fatalf("results = %v", got)
			}
			if err := ring.Close(); err != nil {
				t.Fatal(err)
			}
			x.round(d)
			x.round(d)
			if got := probeResults(x.owner.takeMessages()); len(got) == 0 || got[len(got)-1] != "exited" {
				t.Errorf("results = %v", got)
			}
			x.ring("agent", ringbuf.V4, 8)
			x.round(d)
			if got := probeResults(x.owner.takeMessages()); len(got) == 0 || got[len(got)-1] != "open" {
				t.Errorf("after a restart results = %v", got)
			}
		})
	}
}

func TestWritersOmitsForksAndReaders(t *testing.T) {
	proc := t.TempDir()
	for pid, tc := range map[string]struct{ parent, perms string }{
		"100": {"1", "rw-s"}, "101": {"100", "rw-s"}, "200": {"1", "rw-s"}, "300": {"1", "r--s"},
		strconv.Itoa(os.Getpid()): {"1", "rw-s"},
	} {
		dir := filepath.Join(proc, pid)
		if err := os.Mkdir(dir, 0o750); err != nil {
			t.Fatal(err)
		}
		line := "7f0a4c000000-7f0a4c011000 " + tc.perms + " 00000000 fe:00 5678   /run/nixl/agent\n"
		touch(t, filepath.Join(dir, "maps"), "7f0a00000000-7f0a00001000 rw-p 00000000 00:00 0\n"+line+line)
		touch(t, filepath.Join(dir, "stat"), pid+" (a) name) S "+tc.parent+" 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 4711 0 0 0")
	}
	touch(t, filepath.Join(proc, "meminfo"), "")
	got := writers(proc, map[string]string{fileKey(ringbuf.FileID{Dev: 0xfe00, Ino: 5678}): "agent"})
	if diff := cmp.Diff(map[string][]string{"agent": {"100", "200"}}, got); diff != "" {
		t.Error(diff)
	}
}

// agentVariable makes the test binary an agent with a ring at the variable's value,
// until its standard input ends.
const agentVariable = "DISCOVER_TEST_AGENT"

func runAgent(path string) error {
	if _, err := ringbuf.Create(path, ringbuf.V4, 8); err != nil {
		return err
	}
	fmt.Println("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	return nil
}

// startAgent starts an agent in a separate process and returns its PID.
func startAgent(t *testing.T, path string) int {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0]) // ends when its input is closed
	cmd.Env = append(os.Environ(), agentVariable+"="+path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // Wait returns any error of the process
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}
