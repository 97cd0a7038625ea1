// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/processtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// host is a simulated proc file system with the root directory of its processes.
type host struct {
	*processtest.Host
	t    *testing.T
	root string
	now  time.Time
}

func newHost(t *testing.T) *host {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	must.OK(t, err)
	return &host{processtest.New(t), t, root, time.Unix(1000, 0)}
}

type task = processtest.Process

const inAPod = "/kubepods/pod" + uid + "/" + id

var (
	enabled     = []string{"NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_DIR=/run/nixl"}
	overwritten = []string{"EngineCore\x00\x00\x00"}
)

// setProcess starts a process, or changes it.
func (h *host) setProcess(p task) {
	h.t.Helper()
	p.Root, p.Namespace = h.root, cmp.Or(p.Namespace, "mnt:[4026531841]")
	h.Start(p)
}

// exit removes a process, but keeps its open files.
func (h *host) exit(pid int) (dir string) {
	h.t.Helper()
	dir = filepath.Join(h.t.TempDir(), "exited")
	must.OK(h.t, os.Rename(h.Path(pid), dir))
	return dir
}

func (h *host) write(path, contents string) {
	h.t.Helper()
	must.OK(h.t, os.WriteFile(path, []byte(contents), 0o600))
}

// ring creates a ring in the root and returns the line of its mapping.
func (h *host) ring(path string) (mapping string) {
	h.t.Helper()
	file := filepath.Join(h.root, path)
	must.OK(h.t, os.MkdirAll(filepath.Dir(file), 0o750))
	w, err := ringbuf.Create(file, ringbuf.V4, 4096)
	must.OK(h.t, err)
	must.OK(h.t, w.Close())
	return h.mapping(path)
}

// ringSize is the size of the mapping of a ring with 4,096 slots.
var ringSize = 4096*16 + os.Getpagesize()

// mapping returns the line of a file in the root that is mapped for writing and has the size of a
// ring. Newlines in path are escaped as the kernel does.
func (h *host) mapping(path string) string {
	return fmt.Sprintf("7f0000000000-%x rw-s 00000000 00:1a 5678      %s%s\n", uint64(0x7f0000000000)+uint64(ringSize), h.root,
		strings.ReplaceAll(path, "\n", `\012`))
}

// scanUntilDone scans until all processes that are due are examined, and only the examinations of
// the given processes are running: on a busy machine, any scan may be cut short.
func scanUntilDone(s *Scanner, now time.Time, hanging ...int) ([]Process, error) {
	for {
		list, err := s.Scan(now, false)
		i := slices.IndexFunc(s.hanging, func(r *record) bool { return !slices.Contains(hanging, r.PID) })
		switch {
		case i >= 0:
			<-s.hanging[i].done
		case len(s.due(now, false)) == 0:
			return list, err
		}
	}
}

// scan scans after some time.
func (h *host) scan(s *Scanner, after time.Duration) []Process {
	h.t.Helper()
	h.now = h.now.Add(after)
	list, err := scanUntilDone(s, h.now)
	if err != nil {
		h.t.Error(err)
	}
	return list
}

// pids scans after some time and returns the PIDs of the agents.
func (h *host) pids(s *Scanner, after time.Duration) (list []int) {
	h.t.Helper()
	for _, p := range h.scan(s, after) {
		list = append(list, p.PID)
	}
	return list
}
