// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package dashboards

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// alone runs the test in a PID namespace, because the Collector would otherwise discover all
// agents of the machine. It reports whether the caller is in that namespace.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getpid() == 1 {
		must.OK(t, syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""))
		must.OK(t, syscall.Mount("proc", "/proc", "proc", 0, ""))
		return true
	}
	if os.Getuid() != 0 {
		t.Skip("only root can create a PID namespace")
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// life is a process of an agent.
type life struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader

	written int // events
}

// startLife starts a process of the agent in dir.
func startLife(t *testing.T, program, dir string) *life {
	t.Helper()
	l := &life{cmd: exec.CommandContext(t.Context(), program)}
	l.cmd.Env = []string{"NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_DIR=" + dir}
	l.cmd.Stderr = t.Output()
	in, err1 := l.cmd.StdinPipe()
	out, err2 := l.cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	l.in, l.out = in, bufio.NewReader(out)
	must.OK(t, l.cmd.Start())
	l.count(t)
	return l
}

// count reads how many events the process has written.
func (l *life) count(t *testing.T) {
	t.Helper()
	line, err := l.out.ReadString('\n')
	if err == nil {
		l.written, err = strconv.Atoi(strings.TrimSpace(line))
	}
	must.OK(t, err)
}

// write writes the events of one interval.
func (l *life) write(t *testing.T) {
	t.Helper()
	if _, err := fmt.Fprintln(l.in, 100); err != nil {
		t.Fatal(err)
	}
	l.count(t)
}

// exit ends the process. It returns how many events it has written.
func (l *life) exit(t *testing.T) int {
	t.Helper()
	if err := l.in.Close(); err != nil {
		t.Error(err)
	}
	l.count(t)
	if err := l.cmd.Wait(); err != nil {
		t.Error(err)
	}
	return l.written
}

// An agent that was discovered restarts, with another PID, and so does the Collector. Totals are exported with storage, with and without the PID on the resource, and as deltas.
func TestBackendsAddUpWhatDiscoveredAgentsWrote(t *testing.T) {
	built.Path(t, "OTELCOL_NIXL")
	built.Path(t, "VICTORIA_METRICS")
	t.Parallel()
	if !alone(t) {
		return
	}
	agent := filepath.Join(t.TempDir(), "agent")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", agent, "../agent").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	backends := []backend{startVictoriaMetrics(t), startPrometheus(t, "process.pid")}
	const lives, metric = 2, `__name__=~"nixl_events(_total)?"` // the suffix depends on the temporality
	for _, tc := range []struct {
		name, receiver, processor string
		pids                      float64 // different ones in the series
		sum                       string  // of all values of a series
	}{
		{"defaults", "storage: file_storage", "", 1, "last_over_time"},
		{"pid", "storage: file_storage\n    resource_attributes: {process.pid: {enabled: true}}", "", lives, "last_over_time"},
		{"delta", "resource_attributes: {process.pid: {enabled: true}}", "cumulative_to_delta", lives, "sum_over_time"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			backends := backends
			if tc.processor != "" { // VictoriaMetrics ignores deltas
				backends = backends[1:]
			}
			dir := t.TempDir()
			config := discovering(t, tc.name, tc.receiver, tc.processor, backends)
			written := 0
			await := func() {
				t.Helper()
				for _, b := range backends {
					b.awaitValue(t, fmt.Sprintf("sum(%s({%s,host_name=%q}[1h]))", tc.sum, metric, tc.name), float64(written))
					if tc.processor == "" { // the sums of increases are the same only if no series starts again
						b.awaitValue(t, fmt.Sprintf("sum(resets({%s,host_name=%q}[1h]))", metric, tc.name), 0)
					}
				}
			}
			collector := runCollector(t, config)
			for n := range lives {
				l := startLife(t, agent, dir)
				before := written
				write := func() {
					l.write(t)
					written = before + l.written
				}
				write()
				await()
				if n > 0 {
					write()
					collector.Stop(t, syscall.SIGTERM)
					write() // in the ring when the next Collector starts
					collector = runCollector(t, config)
					await()
				}
				written = before + l.exit(t)
				await()
			}
			for _, b := range backends {
				b.awaitValue(t, fmt.Sprintf("count(count by (process_pid) (last_over_time({%s,host_name=%q}[1h])))", metric, tc.name), tc.pids)
			}
			collector.Stop(t, syscall.SIGTERM)
		})
	}
}

// discovering writes the configuration of a Collector with storage that discovers agents and exports
// to backends.
func discovering(t *testing.T, hostName, receiver, processor string, backends []backend) (path string) {
	t.Helper()
	exporters, names := "", ""
	for _, b := range backends {
		exporters += fmt.Sprintf("  otlp_http/%s: {endpoint: %q, sending_queue: {storage: file_storage, num_consumers: 1}}\n", b.name, b.otlp)
		names += "otlp_http/" + b.name + ", "
	}
	dir := t.TempDir()
	path = filepath.Join(dir, "collector.yaml")
	text := fmt.Sprintf(`
extensions: {file_storage: {directory: %q}}
receivers:
  nixl_shm:
    discovery: {processes: {interval: 200ms}}
    resource: {host.name: %s}
    metrics: {nixl.events: {enabled: true}}
    initial_delay: 0s
    collection_interval: 200ms
    %s
processors: {cumulative_to_delta: {max_staleness: 0}}
exporters:
%sservice:
  extensions: [file_storage]
  pipelines: {metrics: {receivers: [nixl_shm], processors: [%s], exporters: [%s]}}
  telemetry: {metrics: {level: none}}
`, dir, hostName, receiver, exporters, processor, names)
	must.OK(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func runCollector(t *testing.T, config string) *proc.Process {
	t.Helper()
	return proc.Start(t, exec.CommandContext(t.Context(), built.Path(t, "OTELCOL_NIXL"), "--config="+config))
}

func (b backend) awaitValue(t *testing.T, expr string, want float64) {
	t.Helper()
	must.Eventually(t, func() string {
		list, err := b.query(t, expr)
		if err != nil {
			t.Fatalf("%s: %s: %v", b.name, expr, err) // a retry doesn't help
		}
		if len(list) != 1 || list[0].value != want {
			return fmt.Sprintf("%s: %s is %v, want %v", b.name, expr, list, want)
		}
		return ""
	})
}
