// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/process"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// probeAll probes all open rings. It sends a result even if nothing changed: the
// owner may have received an earlier result before the ring.
func (t *tracker) probeAll() {
	for _, r := range t.records {
		if r.ring != nil {
			t.probe(r)
		}
	}
}

// probe asks the kernel whether another process has a ring open, and sends the
// result to the owner.
func (t *tracker) probe(r *record) {
	attended, err := r.ring.Attended()
	m := drain.Attended{ID: r.ID, Reader: r.ring, Open: attended, Known: err == nil}
	if m.Known && !m.Open {
		r.exitInfo = r.info
	}
	t.send(m)
	if m.Known && !m.Open && (t.cfg.CloseExited || t.stopped) {
		t.send(drain.Gone{ID: r.ID, Reader: r.ring})
	}
}

// sharedInterval is the minimum interval between searches for shared rings. A
// search reads the mappings of all processes, which takes up to a second on a large
// machine.
const sharedInterval = time.Minute

// checkShared searches for agents that share a ring, on a separate goroutine. Only
// restarted rings are candidates: an agent that starts under the name of another
// one resets their ring.
func (t *tracker) checkShared() {
	now := t.cfg.Now()
	if len(t.restarted) == 0 || now.Sub(t.sharedChecked) < sharedInterval {
		return
	}
	rings := t.restarted
	t.restarted, t.sharedChecked = make(map[ringbuf.FileID]string), now
	t.sharedCheck.Go(func() { t.reportShared(rings) })
}

// reportShared reports the rings that several processes write to.
func (t *tracker) reportShared(rings map[ringbuf.FileID]string) {
	files := make(map[string]string, len(rings))
	for id, path := range rings {
		files[fileKey(id)] = path
	}
	for path, pids := range writers("/proc", files) {
		if len(pids) > 1 {
			t.notices.Report(notice.Notice{
				Kind: notice.RingShared, Level: slog.LevelWarn, Path: path,
				Text: fmt.Sprintf("processes %s write to this ring at the same time and lose each other's events; give each agent a unique name",
					strings.Join(pids, ", ")),
			})
		}
	}
}

// writers returns the processes that have each file mapped for writing. It omits
// this process, and processes whose parent has the file mapped: a fork inherits the
// mapping.
func writers(proc string, files map[string]string) map[string][]string {
	found, parents := make(map[string][]string), make(map[string]string)
	self := strconv.Itoa(os.Getpid())
	entries, _ := os.ReadDir(proc) // without /proc, there are no results
	for _, e := range entries {
		pid := e.Name()
		if pid[0] < '0' || pid[0] > '9' || pid == self {
			continue
		}
		for _, path := range mappedFiles(filepath.Join(proc, pid, "maps"), files) {
			found[path] = append(found[path], pid)
			parents[pid] = parent(filepath.Join(proc, pid, "stat"))
		}
	}
	for path, pids := range found {
		all := slices.Clone(pids)
		found[path] = slices.DeleteFunc(pids, func(pid string) bool { return slices.Contains(all, parents[pid]) })
	}
	return found
}

// mappedFiles returns which of the files a process has mapped for writing.
func mappedFiles(maps string, files map[string]string) (paths []string) {
	writableMappings(maps, func(m process.Mapping) bool {
		if path := files[mappingKey(m)]; path != "" && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
		return true
	})
	return paths
}

// writableMappings calls fn for each file that a process has mapped for writing, until
// fn returns false. If the process has exited or belongs to another user, it has no
// mappings.
func writableMappings(maps string, fn func(process.Mapping) bool) {
	f, err := os.Open(maps)
	if err != nil {
		return
	}
	defer f.Close()
	// If reading fails, the process has most likely exited.
	_ = process.ReadMaps(f, func(m process.Mapping) bool { return !m.Write || !m.Shared || fn(m) })
}

// mappingKey identifies the file of a mapping.
func mappingKey(m process.Mapping) string {
	return string(m.Dev) + " " + strconv.FormatUint(m.Inode, 10)
}

// fileKey returns the mappingKey of a file's mappings.
func fileKey(id ringbuf.FileID) string {
	major := id.Dev>>8&0xfff | id.Dev>>32&^uint64(0xfff)
	minor := id.Dev&0xff | id.Dev>>12&0xffffff00
	return fmt.Sprintf("%02x:%02x %d", major, minor, id.Ino)
}

// parent returns the PID of a process's parent, or "" if the process has exited.
func parent(stat string) string {
	b, _ := os.ReadFile(stat)
	s, ok := process.ParseStat(b)
	if !ok {
		return ""
	}
	return strconv.Itoa(s.Parent)
}
