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

// attend asks the kernel about each open ring whether another process has it
// open, and sends the answers: the owner may not have taken the ring yet when it
// got the last one.
func (t *tracker) attend() {
	for _, r := range t.records {
		if r.ring != nil {
			t.probe(r)
		}
	}
}

// probe asks about one ring.
func (t *tracker) probe(r *record) {
	attended, err := r.ring.Attended()
	m := drain.Attended{ID: r.ID, Reader: r.ring, Open: attended, Known: err == nil}
	if m.Known && !m.Open {
		r.left = r.info
	}
	t.send(m)
	if m.Known && !m.Open && t.cfg.CloseExited {
		t.send(drain.Gone{ID: r.ID, Reader: r.ring})
	}
}

// shareEvery is how often at most it is found out who writes to rings. Reading
// the mappings of all processes takes up to a second on a large machine.
const shareEvery = time.Minute

// checkShared starts looking for agents that share a ring, on a goroutine of its
// own, if there may be some: when an agent starts under the name of another, it
// restarts the ring of both.
func (t *tracker) checkShared() {
	now := t.cfg.Now()
	if len(t.restarted) == 0 || now.Sub(t.checked) < shareEvery {
		return
	}
	rings := t.restarted
	t.restarted, t.checked = make(map[ringbuf.FileID]string), now
	t.checking.Go(func() { t.reportShared(rings) })
}

// reportShared reports rings that several processes write to.
func (t *tracker) reportShared(rings map[ringbuf.FileID]string) {
	files := make(map[string]string, len(rings))
	for id, path := range rings {
		files[mapped(id)] = path
	}
	for path, pids := range writers("/proc", files) {
		if len(pids) > 1 {
			t.notices.Report(notice.Notice{
				Kind: notice.RingShared, Level: slog.LevelWarn, Path: path,
				Text: fmt.Sprintf("processes %s write to this ring at the same time and lose each other's events; give each agent a name of its own",
					strings.Join(pids, ", ")),
			})
		}
	}
}

// writers returns which processes have files mapped for writing. Not among them
// are this process, and those whose parent is: a fork inherits the mapping.
func writers(proc string, files map[string]string) map[string][]string {
	found, parents := make(map[string][]string), make(map[string]string)
	self := strconv.Itoa(os.Getpid())
	entries, _ := os.ReadDir(proc) // without /proc nothing is known
	for _, e := range entries {
		pid := e.Name()
		if pid[0] < '0' || pid[0] > '9' || pid == self {
			continue
		}
		for _, path := range mappings(filepath.Join(proc, pid, "maps"), files) {
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

// mappings returns which of some files are mapped for writing.
func mappings(maps string, files map[string]string) (paths []string) {
	f, err := os.Open(maps)
	if err != nil {
		return nil // the process belongs to another user, or has exited
	}
	defer f.Close()
	// A list that ends early is as good as one of a process that has exited.
	_ = process.ReadMaps(f, func(m process.Mapping) bool {
		if !m.Write || !m.Shared {
			return true
		}
		path := files[fmt.Sprintf("%s %d", m.Dev, m.Inode)]
		if path != "" && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
		return true
	})
	return paths
}

// mapped returns the device and the inode of a file as /proc has them.
func mapped(id ringbuf.FileID) string {
	major := id.Dev>>8&0xfff | id.Dev>>32&^uint64(0xfff)
	minor := id.Dev&0xff | id.Dev>>12&0xffffff00
	return fmt.Sprintf("%02x:%02x %d", major, minor, id.Ino)
}

// parent returns the parent of a process, or "" if it has exited.
func parent(stat string) string {
	b, _ := os.ReadFile(stat)
	s, ok := process.ParseStat(b)
	if !ok {
		return ""
	}
	return strconv.Itoa(s.Parent)
}
