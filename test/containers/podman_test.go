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
	"testing"
	"time"
)

// variable enables the tests.
const variable = "NIXL_CONTAINER_TEST"

// podman is an installation of podman that belongs to this test program: its own
// storage, image and cgroups.
type podman struct {
	dir string
}

var shared podman

func TestMain(m *testing.M) {
	if os.Getenv(variable) == "" {
		os.Exit(m.Run())
	}
	code, err := shared.run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "container tests:", err)
		code = 1
	}
	os.Exit(code)
}

func (p *podman) run(m *testing.M) (code int, err error) {
	if os.Getuid() != 0 {
		return 1, errors.New("run as root: other users' processes are looked at")
	}
	for _, program := range []string{"podman", "runc"} {
		if _, err := exec.LookPath(program); err != nil {
			return 1, fmt.Errorf("%w; on Debian: apt-get install podman runc", err)
		}
	}
	if p.dir, err = os.MkdirTemp("", "nixl-containers-"); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, p.remove()) }()
	if err := p.buildImage(); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// command is a call of podman. The limits on files and processes that it would set
// itself take a capability that this machine may lack.
func (p *podman) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "podman", append([]string{
		"--root", filepath.Join(p.dir, "root"), "--runroot", filepath.Join(p.dir, "run"), "--tmpdir", filepath.Join(p.dir, "tmp"),
		"--storage-driver=overlay", "--cgroup-manager=cgroupfs", "--runtime=runc", "--events-backend=none",
	}, args...)...)
}

func (p *podman) do(ctx context.Context, args ...string) (string, error) {
	out, err := p.command(ctx, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("podman %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

const image = "nixl-agent"

// buildImage makes an image of the agent, a directory that everybody can write to,
// and links that lead out.
func (p *podman) buildImage() error {
	program := filepath.Join(p.dir, "agent")
	build := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, "./agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the agent: %w: %s", err, out)
	}
	contents, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, h := range []*tar.Header{
		{Name: "agent", Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(contents))},
		{Name: "rings", Typeflag: tar.TypeDir, Mode: 0o1777},
		{Name: "var", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "var/run", Typeflag: tar.TypeSymlink, Linkname: "/run"},
		{Name: "magic", Typeflag: tar.TypeSymlink, Linkname: "/proc/1/root/rings"},
		{Name: "up", Typeflag: tar.TypeSymlink, Linkname: "../../../../../.." + p.dir},
	} {
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write(contents); err != nil {
				return err
			}
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	load := p.command(context.Background(), "import", "--change", `ENTRYPOINT ["/agent"]`, "-", image)
	load.Stdin = &archive
	if out, err := load.CombinedOutput(); err != nil {
		return fmt.Errorf("import the image: %w: %s", err, out)
	}
	return nil
}

// remove removes everything that was made.
func (p *podman) remove() error {
	_, err := p.do(context.Background(), "rm", "--all", "--force", "--time=0")
	return errors.Join(err, p.removeCgroups(), os.RemoveAll(p.dir))
}

// cgroup is the parent of the containers' cgroups.
func (p *podman) cgroup() string { return "/" + filepath.Base(p.dir) }

// removeCgroups removes the cgroups of pods, which podman leaves.
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

// container is a running container with one agent.
type container struct {
	t       *testing.T
	name    string
	id      string
	pid     int
	in      io.WriteCloser
	out     *bufio.Reader
	written int // events, as the agent has printed
	cmd     *exec.Cmd
}

// spec is what a container is started with.
type spec struct {
	pod  string   // UID, "" for none
	args []string // of podman run
	cmd  []string // of the agent
}

// start starts a container and waits until its agent has a ring.
func start(t *testing.T, s spec) *container {
	t.Helper()
	if os.Getenv(variable) == "" {
		t.Skip("run `make container-test`")
	}
	parent := shared.cgroup()
	if s.pod != "" {
		parent += "/kubepods/burstable/pod" + s.pod
	}
	c := &container{t: t, name: fmt.Sprintf("c%d", time.Now().UnixNano())}
	args := slices.Concat([]string{
		"run", "--rm", "--interactive", "--name", c.name, "--network=none", "--cgroup-parent", parent,
		"--ulimit=nofile=1024:1024", "--ulimit=nproc=4096:4096",
	}, s.args, []string{image}, s.cmd)
	c.cmd = shared.command(context.WithoutCancel(t.Context()), args...) // it ends with its input
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	c.out = bufio.NewReader(out)
	c.count()
	inspect, err := shared.do(t.Context(), "inspect", "--format", "{{.Id}} {{.State.Pid}}", c.name)
	if err != nil {
		t.Fatal(err)
	}
	id, pid, _ := strings.Cut(inspect, " ")
	c.id = id
	if c.pid, err = strconv.Atoi(pid); err != nil {
		t.Fatal(err)
	}
	return c
}

// count reads how many events the agent has written.
func (c *container) count() {
	c.t.Helper()
	line, err := c.out.ReadString('\n')
	if err == nil {
		c.written, err = strconv.Atoi(strings.TrimSpace(line))
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// interval lets the agent run for an interval.
func (c *container) interval() {
	c.t.Helper()
	if _, err := fmt.Fprintln(c.in); err != nil {
		c.t.Fatal(err)
	}
	c.count()
}

// stop ends the agent, and so the container.
func (c *container) stop() {
	c.t.Helper()
	if err := c.in.Close(); err != nil {
		c.t.Error(err)
	}
	c.count()
	if err := c.cmd.Wait(); err != nil {
		c.t.Error(err)
	}
}

// kill removes the container, if it is still there.
func (c *container) kill() {
	if c.cmd.ProcessState == nil {
		_, _ = shared.do(context.Background(), "kill", c.name)
		_ = c.cmd.Wait() // the agent was killed
	}
}
