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
	// scanLife is how long a scan is used, for files that haven't changed for scanAge
	// before it: an agent that starts changes the file before it maps it.
	scanLife, scanAge = 2 * time.Second, time.Second
	// maxScan limits the time of a scan, and scanShare how much of the time is spent on
	// scans: one part in scanShare. A process may have any number of mappings.
	maxScan, scanShare = time.Second, 20
	// maxMapped limits the files that a scan remembers.
	maxMapped = 1 << 16
)

// mappings finds the processes of a container that have rings mapped. A directory may have
// thousands of rings, so one scan reads the mappings of all processes, for all rings that
// are looked up soon after it.
type mappings struct {
	proc  string
	pacer *pacer

	mu     sync.Mutex
	at     time.Time        // start of the last scan
	byFile map[files.ID]int // PID
	byPath map[string]int   // PID by path in the mount namespace
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

// find returns the PID of the process that has a ring mapped. It reports false if there is
// none among the processes in the mount namespace of members, which has at least one. On an
// overlay file system, the mapping may have a different inode, so an equal path also counts.
func (m *mappings) find(members []process.Process, id files.ID, path string, changed time.Time) (int, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.at) > scanLife || !changed.Add(scanAge).Before(m.at) {
		m.pacer.run(func() { m.scan(members) })
	}
	if pid, ok := m.byFile[id]; ok {
		return pid, true
	}
	pid, ok := m.byPath[path]
	return pid, ok
}

// scan reads the mappings of the members, and of all other processes in their mount
// namespace, such as a worker that was started after the last search.
func (m *mappings) scan(members []process.Process) {
	m.at, m.byFile, m.byPath = time.Now(), make(map[files.ID]int), make(map[string]int)
	for _, p := range members {
		if !m.read(p.PID) {
			return
		}
	}
	pids, _ := process.List(m.proc) // without /proc, no process is found
	for _, pid := range pids {
		if slices.ContainsFunc(members, func(p process.Process) bool { return p.PID == pid }) {
			continue
		}
		namespace, err := os.Readlink(filepath.Join(m.proc, strconv.Itoa(pid), "ns", "mnt"))
		if err == nil && strings.HasPrefix(members[0].MountNS, namespace+" ") && !m.read(pid) {
			return
		}
	}
}

// read reads the mappings of a process. It reports whether the scan may continue.
func (m *mappings) read(pid int) bool {
	goOn := true
	for one, err := range process.SharedMappings(m.proc, pid) {
		if err != nil || !one.Write { // the mappings of another user's process can't be read
			continue
		}
		id, ok := one.ID()
		if _, known := m.byFile[id]; ok && !known && len(m.byFile) < maxMapped {
			m.byFile[id] = pid
		}
		if _, known := m.byPath[string(one.Path)]; !known && len(m.byPath) < maxMapped {
			m.byPath[string(one.Path)] = pid
		}
		if goOn = time.Since(m.at) < maxScan; !goOn {
			break
		}
	}
	select {
	case <-m.pacer.stopped:
		return false
	default:
		return goOn
	}
}
