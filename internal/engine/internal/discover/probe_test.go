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
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/process"
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
			d := x.directory(func(c *Config) { c.Observe = mode == ringbuf.Observe })
			x.round(d)
			x.round(d)
			// A ring is probed when it is opened, and again by each walk.
			if got := probeResults(x.owner.takeMessages()); !slices.Equal(got, []string{"open", "open", "open"}) {
				t.Fatalf("results = %v", got)
			}
			must.OK(t, ring.Close())
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

// inInitialNamespace skips a test that needs to see all processes of the machine.
func inInitialNamespace(t *testing.T) {
	t.Helper()
	if u, err := process.FindUsers(t.Context(), "/proc", nil); err != nil || !u.Everywhere || len(u.Hidden) > 0 {
		t.Skip("needs to see all processes of the machine")
	}
}

// refreshUntil refreshes a directory until the last probe has a result.
func (x *fixture) refreshUntil(d *Directory, want string) {
	x.t.Helper()
	must.Eventually(x.t, func() string {
		x.owner.takeMessages()
		d.refresh()
		d.searches.Wait()
		got := probeResults(x.owner.takeMessages())
		if len(got) > 0 && got[len(got)-1] == want {
			return ""
		}
		x.advance(usersInterval)
		return fmt.Sprintf("results = %v, want %s", got, want)
	})
}

// A consumer and an observer have the ring open, so the kernel refuses both their leases.
func TestExitIsDetectedNextToAnotherReader(t *testing.T) {
	inInitialNamespace(t)
	path := filepath.Join(t.TempDir(), "agent")
	first := startAgent(t, path)
	var readers []*fixture
	var dirs []*Directory
	for _, mode := range []ringbuf.Mode{ringbuf.Consume, ringbuf.Observe} {
		x := newFixture(t)
		x.dir = filepath.Dir(path)
		dirs = append(dirs, x.directory(func(c *Config) { c.Observe = mode == ringbuf.Observe }))
		readers = append(readers, x)
	}
	for _, want := range []string{"open", "exited", "open"} {
		switch want {
		case "exited":
			first.stop()
		case "open":
			if first.stopped {
				startAgent(t, path)
			}
		}
		for i, x := range readers {
			x.refreshUntil(dirs[i], want)
			for range 5 { // it stays like this
				x.advance(usersInterval)
				x.refreshUntil(dirs[i], want)
			}
		}
	}
}

func TestConsumersAndForksAreNotRivals(t *testing.T) {
	user := func(pid, parent, writable int) process.User {
		return process.User{PID: pid, Parent: parent, Writable: writable}
	}
	for name, tc := range map[string]struct {
		users  []process.User
		holder int
		want   []string
	}{
		"two agents":                       {[]process.User{user(100, 1, 1), user(200, 1, 1)}, 0, []string{"100", "200"}},
		"an agent and its fork":            {[]process.User{user(100, 1, 1), user(101, 100, 1)}, 0, []string{"100"}},
		"a consumer":                       {[]process.User{user(100, 1, 1), user(200, 1, 1)}, 200, []string{"100"}},
		"an observer":                      {[]process.User{user(100, 1, 1), user(200, 1, 0)}, 0, []string{"100"}},
		"a consumer that is also an agent": {[]process.User{user(100, 1, 2)}, 100, []string{"100"}},
		"a consumer alone":                 {[]process.User{user(100, 1, 1), user(200, 1, 0)}, 100, nil},
	} {
		id := files.ID{Dev: 1, Ino: 2}
		users := process.Users{Of: map[files.ID][]process.User{id: tc.users}, Consumers: map[files.ID]int{id: tc.holder}}
		if got := rivals(users.Agents(id)); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
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

// agent is an agent in a separate process.
type agent struct {
	pid     int
	stop    func()
	stopped bool
}

// startAgent starts an agent in a separate process.
func startAgent(t *testing.T, path string) *agent {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0]) // ends when its input is closed
	cmd.Env = append(os.Environ(), agentVariable+"="+path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must.OK(t, err)
	out, err := cmd.StdoutPipe()
	must.OK(t, err)
	must.OK(t, cmd.Start())
	a := &agent{pid: cmd.Process.Pid}
	a.stop = func() {
		if a.stopped {
			return
		}
		a.stopped = true
		_ = in.Close() // Wait returns any error of the process
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(a.stop)
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return a
}
