// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containers

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

const (
	variable          = "NIXL_CONTAINER_TEST" // enables the tests
	collectorVariable = "OTELCOL_NIXL"        // path of the built Collector
	dirVariable       = "NIXL_CONTAINER_DIR"  // directory of the tests in their namespace
)

// podman is a podman setup with its own storage, images and cgroups.
type podman struct {
	dir string
}

var shared podman

// TestMain runs the tests in their own PID namespace, so that the Collector doesn't
// discover and drain other agents on the machine.
func TestMain(m *testing.M) {
	var code int
	var err error
	switch {
	case os.Getenv(variable) == "":
		code = m.Run()
	case os.Getpid() != 1:
		code, err = isolate()
	default:
		code, err = shared.run(m)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "container tests:", err)
		code = 1
	}
	os.Exit(code)
}

// isolate runs this program as the first process of a PID namespace. When it exits,
// the kernel kills all processes in the namespace, even if a test panics.
func isolate() (code int, err error) {
	if os.Getuid() != 0 {
		return 1, errors.New("run the tests as root: they inspect processes of other users")
	}
	p := podman{}
	if p.dir, err = os.MkdirTemp("", "nixl-containers-"); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, p.removeCgroups(), os.RemoveAll(p.dir)) }()
	cmd := exec.CommandContext(context.Background(), "/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), dirVariable+"="+p.dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.Exited() {
		return exit.ExitCode(), nil
	}
	return 0, err
}

func (p *podman) run(m *testing.M) (code int, err error) {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return 1, fmt.Errorf("make mounts private: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return 1, fmt.Errorf("mount /proc: %w", err)
	}
	for _, program := range []string{"podman", "runc"} {
		if _, err := exec.LookPath(program); err != nil {
			return 1, fmt.Errorf("%w; on Debian: apt-get install podman runc", err)
		}
	}
	p.dir = os.Getenv(dirVariable)
	if err := p.buildAgent(); err != nil {
		return 1, err
	}
	if program := os.Getenv(collectorVariable); program != "" {
		if err := p.buildImage(collectorImage, program, nil); err != nil {
			return 1, err
		}
	}
	return m.Run(), nil
}

// command returns an invocation of podman.
func (p *podman) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "podman", append([]string{
		"--root", filepath.Join(p.dir, "root"), "--runroot", filepath.Join(p.dir, "run"), "--tmpdir", filepath.Join(p.dir, "tmp"),
		"--storage-driver=overlay", "--cgroup-manager=cgroupfs", "--runtime=runc", "--events-backend=none",
	}, args...)...)
	cmd.WaitDelay = time.Second // podman's own children may keep its output open
	return cmd
}

// The names of the images that the tests build.
const (
	agentImage     = "nixl-agent"
	collectorImage = "nixl-collector"
)

// agentProgram returns the path of the program of agents and attackers.
func (p *podman) agentProgram() string { return filepath.Join(p.dir, "agent") }

// buildAgent builds the image of an agent. It has a world-writable directory.
func (p *podman) buildAgent() error {
	program := p.agentProgram()
	build := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, "../agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the agent: %w: %s", err, out)
	}
	return p.buildImage(agentImage, program, []*tar.Header{
		{Name: "rings", Typeflag: tar.TypeDir, Mode: 0o1777},
		{Name: "var", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "var/run", Typeflag: tar.TypeSymlink, Linkname: "/run"},
	})
}

// buildImage builds an image with a static program and other entries.
func (p *podman) buildImage(name, program string, entries []*tar.Header) error {
	contents, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, h := range entries {
		if err := w.WriteHeader(h); err != nil {
			return err
		}
	}
	base := filepath.Base(program)
	if err := w.WriteHeader(&tar.Header{Name: base, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(contents))}); err != nil {
		return err
	}
	if _, err := w.Write(contents); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	load := p.command(context.Background(), "import", "--change", fmt.Sprintf("ENTRYPOINT [%q]", "/"+base), "-", name)
	load.Stdin = &archive
	if out, err := load.CombinedOutput(); err != nil {
		return fmt.Errorf("import the image %s: %w: %s", name, err, out)
	}
	return nil
}

// cgroup returns the parent of the containers' cgroups.
func (p *podman) cgroup() string { return "/" + filepath.Base(p.dir) }

// removeCgroups removes the cgroups of pods, which podman doesn't remove.
func (p *podman) removeCgroups() error {
	roots, err := filepath.Glob("/sys/fs/cgroup/*" + p.cgroup())
	if err != nil {
		return err
	}
	for _, root := range append(roots, "/sys/fs/cgroup"+p.cgroup()) {
		var dirs []string
		_ = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		for _, dir := range slices.Backward(dirs) {
			err = errors.Join(err, os.Remove(dir))
		}
	}
	return err
}

// container is a running container.
type container struct {
	t       *testing.T
	pidFile string
	cmd     *exec.Cmd // podman run
	in      io.WriteCloser
	pipe    *os.File
	out     *bufio.Reader // of pipe
}

// launch runs a container, which stops at the end of its input. It sets the limits
// on files and processes because podman's defaults may need CAP_SYS_RESOURCE.
func launch(t *testing.T, image string, options, args []string) *container {
	t.Helper()
	c := &container{t: t, pidFile: filepath.Join(t.TempDir(), "pid")}
	c.cmd = shared.command(context.WithoutCancel(t.Context()), slices.Concat([]string{
		"run", "--rm", "--interactive", "--network=none", "--pidfile", c.pidFile, "--ulimit=nofile=1024:1024", "--ulimit=nproc=4096:4096",
	}, options, []string{image}, args)...)
	out, err := c.cmd.StdoutPipe()
	must.OK(t, err)
	var ok bool
	if c.pipe, ok = out.(*os.File); !ok {
		t.Fatalf("the output is a %T", out)
	}
	c.out = bufio.NewReader(out)
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	c.cmd.Stderr = t.Output()
	must.OK(t, c.cmd.Start())
	t.Cleanup(c.kill)
	return c
}

// line reads the next line of the program. It waits no longer than patience.
func (c *container) line(patience time.Duration) (string, error) {
	if err := c.pipe.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	line, err := c.out.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

// pid returns the ID of the container's first process, or 0 if it hasn't started.
func (c *container) pid() int {
	text, _ := os.ReadFile(c.pidFile)
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

// kill kills the container if it is still running. It doesn't wait until podman has removed it.
func (c *container) kill() {
	if c.cmd.ProcessState != nil {
		return
	}
	if pid := c.pid(); pid > 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait() // it was killed
}

// agent is a container with one agent.
type agent struct {
	*container

	written int // events, as printed by the agent
}

// spec describes how to start an agent.
type spec struct {
	pod     string   // UID
	options []string // of podman run
	args    []string // of the agent
}

const enable = "--env=NIXL_TELEMETRY_ENABLE=y"

// start starts an agent and waits until it has a ring.
func start(t *testing.T, s spec) *agent {
	t.Helper()
	return startAll(t, s)[0]
}

// startAll starts agents at the same time and waits until they have rings.
func startAll(t *testing.T, list ...spec) (agents []*agent) {
	t.Helper()
	if os.Getenv(variable) == "" {
		t.Skip("run `make container-test`")
	}
	for _, s := range list {
		parent := shared.cgroup() + "/kubepods/burstable/pod" + s.pod
		options := append([]string{"--cgroup-parent=" + parent}, s.options...) // an option may replace it
		agents = append(agents, &agent{container: launch(t, agentImage, options, s.args)})
	}
	for _, a := range agents {
		a.count()
	}
	return agents
}

// count reads how many events the agent has written.
func (a *agent) count() {
	a.t.Helper()
	line, err := a.line(must.Patience)
	if err == nil {
		a.written, err = strconv.Atoi(line)
	}
	must.OK(a.t, err)
}

// transfers is how many transfers an agent writes per interval.
const transfers = 100

// interval makes the agent run one interval.
func (a *agent) interval() {
	a.t.Helper()
	if _, err := fmt.Fprintln(a.in, transfers); err != nil {
		a.t.Fatal(err)
	}
	a.count()
}

// stopAll stops agents, and with them their containers.
func stopAll(agents ...*agent) {
	for _, a := range agents {
		must.OK(a.t, a.in.Close())
	}
	for _, a := range agents {
		a.count()
		if err := a.cmd.Wait(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
			a.t.Error(err)
		}
	}
}
