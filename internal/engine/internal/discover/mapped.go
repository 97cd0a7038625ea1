// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/process"
)

const (
	// maxScan limits the time of a scan, and scanShare how much of the time is spent on
	// scans: one part in scanShare. A process may have any number of mappings.
	maxScan, scanShare = time.Second, 20
	// scanTimeout is how long an agent waits for a scan. A process can block it indefinitely.
	scanTimeout = 5 * time.Second
	// maxOthers limits the processes that a scan examines.
	maxOthers = 64
	// maxMapped limits the files that a scan remembers.
	maxMapped = 1 << 16
)

// mappings finds the processes of a container that have rings mapped. A directory may have
// thousands of rings, so one scan reads the mappings of all processes. Scans run on a goroutine
// of their own, so that no ring waits for one.
type mappings struct {
	proc    string
	pacer   *pacer
	examine func(pid int) (process.Process, error)

	mu      sync.Mutex
	last    scan
	scanned func()    // called after a scan; nil before the first search
	began   time.Time // when the current scan was requested; zero if there is none
}

// scan is what the mappings of all processes in a container show.
type scan struct {
	at       time.Time               // when it began
	complete bool                    // all mappings were read
	others   map[int]process.Process // that have files mapped, and aren't members
	byFile   map[files.ID]mapped
	byPath   map[string]mapped // by path in the mount namespace
}

// mapped is a mapping of a file for writing.
type mapped struct {
	pid   int
	entry string // path in the proc file system that exists as long as the mapping
}

// pacer limits the time that is spent on scans for the directories of one holder.
type pacer struct {
	stopped <-chan struct{} // no scan starts or continues once it is closed

	mu           sync.Mutex
	began, ended time.Time // of the last scan
}

// run calls a scan when it is due, unless the search is stopped before.
func (p *pacer) run(scan func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	timer := time.NewTimer(time.Until(p.ended.Add(scanShare * p.ended.Sub(p.began))))
	defer timer.Stop()
	select {
	case <-p.stopped:
	case <-timer.C:
		p.began = time.Now()
		scan()
		p.ended = time.Now()
	}
}

// find returns the mapping of a ring according to a scan that began after since. If there was
// none, decided is false, a scan begins, and scanned is called when it has ended. If that takes
// too long, the mapping is undecided for good, so found is false and complete, too.
func (m *mappings) find(members []process.Process, id files.ID, path string, since time.Time, scanned func()) (one mapped, found, complete, decided bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last.at.After(since) {
		one, found = m.last.find(id, path)
		return one, found, m.last.complete, true
	}
	m.scanned = scanned
	switch {
	case m.began.IsZero():
		m.began = time.Now()
		go m.scan(members)
	case time.Since(m.began) > scanTimeout:
		return mapped{}, false, false, true
	}
	return mapped{}, false, false, false
}

// other returns a process that the last scan has found, and that isn't a member.
func (m *mappings) other(pid int) (process.Process, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.last.others[pid]
	return p, ok
}

// persists reports whether a ring is still mapped as in the last scan.
func (m *mappings) persists(id files.ID, path string) bool {
	m.mu.Lock()
	one, found := m.last.find(id, path)
	m.mu.Unlock()
	if !found {
		return false
	}
	_, err := os.Lstat(one.entry)
	return err == nil
}

// find returns the mapping of a file. On an overlay file system, old kernels show another
// inode, so an equal path also counts.
func (s *scan) find(id files.ID, path string) (mapped, bool) {
	if one, ok := s.byFile[id]; ok {
		return one, true
	}
	one, ok := s.byPath[path]
	return one, ok
}

// scan reads the mappings of the members, and of all other processes in their mount
// namespace, such as a worker that was started after the last search.
func (m *mappings) scan(members []process.Process) {
	s := scan{others: make(map[int]process.Process), byFile: make(map[files.ID]mapped), byPath: make(map[string]mapped)}
	m.pacer.run(func() {
		s.at = time.Now()
		s.complete = m.readAll(&s, members)
	})
	m.mu.Lock()
	if !s.at.IsZero() {
		m.last = s
	}
	m.began = time.Time{}
	scanned := m.scanned
	m.mu.Unlock()
	select {
	case <-m.pacer.stopped:
	default:
		scanned()
	}
}

// readAll reports whether it has read the mappings of all processes.
func (m *mappings) readAll(s *scan, members []process.Process) bool {
	complete := true
	for _, p := range members {
		complete = m.read(s, p.PID) && complete
	}
	pids, err := process.List(m.proc)
	for _, pid := range pids {
		if slices.ContainsFunc(members, func(p process.Process) bool { return p.PID == pid }) {
			continue
		}
		namespace, err := os.Readlink(filepath.Join(m.proc, strconv.Itoa(pid), "ns", "mnt"))
		if err != nil || !strings.HasPrefix(members[0].MountNS, namespace+" ") {
			continue
		}
		before := len(s.byFile) + len(s.byPath)
		complete = m.read(s, pid) && complete
		if len(s.byFile)+len(s.byPath) > before && len(s.others) < maxOthers {
			if p, err := m.examine(pid); err == nil {
				p.MountNS = members[0].MountNS
				s.others[pid] = p
			}
		}
	}
	return complete && err == nil
}

// read reads the mappings of a process, except for this one, which only consumes rings. It
// reports whether it has read all of them.
func (m *mappings) read(s *scan, pid int) bool {
	if pid == os.Getpid() {
		return true
	}
	for one, err := range process.SharedMappings(m.proc, pid) {
		if err != nil {
			return false // another user's process
		}
		if !one.Write || one.Offset != 0 {
			continue
		}
		this := mapped{pid, filepath.Join(m.proc, strconv.Itoa(pid), "map_files", one.Range())}
		id, ok := one.ID()
		if _, known := s.byFile[id]; ok && !known && len(s.byFile) < maxMapped {
			s.byFile[id] = this
		}
		if _, known := s.byPath[string(one.Path)]; !known && len(s.byPath) < maxMapped {
			s.byPath[string(one.Path)] = this
		}
		if time.Since(s.at) >= maxScan {
			return false
		}
	}
	select {
	case <-m.pacer.stopped:
		return false
	default:
		return len(s.byFile) < maxMapped
	}
}
