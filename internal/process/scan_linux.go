// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Scanner finds the processes of NIXL agents. It isn't safe for concurrent use.
type Scanner struct {
	cfg     Config
	request request // what all examinations have in common

	records map[int]*record // by PID
	hanging []*examination  // examinations that are still running
	last    time.Time       // time of the last scan
	scans   int

	entries []entry
	listing [32 << 10]byte
	link    [4 << 10]byte
}

// record describes a process. The PID may belong to another process now.
type record struct {
	entry
	scan   int    // the last scan that has listed the process
	exe    string // target of the exe link; "" if there is none, or it is hidden
	hidden bool   // the exe link can't be read
	group  string // see readCgroup
	result

	unchanged int           // how often in a row the mappings weren't read; see maxUnchanged
	due       time.Time     // next examination
	wait      time.Duration // interval until the examination after that
	hanging   *examination  // nil if none is running
}

// examination is a request on a goroutine of its own, because the process may block it.
type examination struct {
	record *record
	done   chan struct{}
	result result // valid after done is closed
}

// New returns a Scanner. It reads nothing before Scan.
func New(cfg Config) *Scanner {
	cfg.Proc = cmp.Or(cfg.Proc, "/proc")
	return &Scanner{
		cfg: cfg, records: make(map[int]*record),
		request: request{proc: cfg.Proc, wanted: cfg.variables(), filter: newFilter(cfg.Attributes, cfg.Reserved)},
	}
}

// Scan returns all processes that use NIXL, ordered by PID. It examines those for which
// again returns true once more; again may be nil. If some processes can't be examined, Scan
// returns the others and an error. The error wraps [fs.ErrPermission] if this process lacks
// capabilities.
func (s *Scanner) Scan(now time.Time, again func(Process) bool) ([]Process, error) {
	var err error
	if s.entries, err = list(s.cfg.Proc, s.listing[:], s.entries[:0]); err != nil {
		return nil, fmt.Errorf("find processes: %w", err)
	}
	most := maxScan
	if !s.last.IsZero() {
		most = min(max(now.Sub(s.last)/scanShare, minScan), maxScan)
	}
	s.last = now
	s.scans++
	s.finish()
	link, _ := os.Readlink(filepath.Join(s.cfg.Proc, "self"))
	self, _ := strconv.Atoi(link) // this process has rings mapped, but isn't an agent
	for _, e := range s.entries {
		if e.pid != self {
			s.visit(e, now)
		}
	}
	maps.DeleteFunc(s.records, func(_ int, r *record) bool { return r.scan != s.scans })
	err = s.scanError()
	s.examineAll(s.due(now, again), now, most)
	if s.stopped() {
		return nil, fmt.Errorf("find processes: %w", ErrStopped)
	}
	return s.found(), errors.Join(err, s.permissionError())
}

func (s *Scanner) stopped() bool {
	select {
	case <-s.cfg.Stopped:
		return true
	default:
		return false
	}
}

// visit updates the record of a listed process. A process that is new, or has executed another
// program, is due.
func (s *Scanner) visit(e entry, now time.Time) {
	r := s.records[e.pid]
	if r != nil && r.inode != e.inode && !Runs(s.cfg.Proc, r.process) {
		r = nil
	}
	// Kernel threads and zombies have no program.
	n, err := syscall.Readlink(s.cfg.Proc+"/"+strconv.Itoa(e.pid)+"/exe", s.link[:])
	exe, hidden := s.link[:max(n, 0)], errors.Is(err, fs.ErrPermission)
	if r == nil || r.exe != string(exe) || r.hidden != hidden {
		r = &record{exe: string(exe), hidden: hidden, due: now, wait: minInterval}
		s.records[e.pid] = r
	}
	r.entry, r.scan = e, s.scans
}

// due returns the processes to examine. Containers take turns, so one that has many processes
// delays no other. Those whose processes hang come last.
func (s *Scanner) due(now time.Time, again func(Process) bool) []*record {
	var due []*record
	for _, r := range s.records {
		if r.usesNIXL && again != nil && again(r.process) {
			r.due, r.mapped.size = now, ""
		}
		if r.exe == "" || r.hanging != nil || r.due.After(now) {
			continue
		}
		if err := s.readCgroup(r); err != nil {
			delete(s.records, r.pid)
			continue
		}
		due = append(due, r)
	}
	slices.SortFunc(due, func(a, b *record) int { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.pid, b.pid)) })
	turns, turn := make(map[string]int), make(map[*record]int)
	for _, x := range s.hanging {
		turns[x.record.group] += len(due)
	}
	for _, r := range due {
		turn[r] = turns[r.group]
		turns[r.group]++
	}
	slices.SortStableFunc(due, func(a, b *record) int { return cmp.Compare(turn[a], turn[b]) })
	return due
}

// readCgroup sets the pod, the container and the group of a process. The process can't
// block this. The group is the container, or else the cgroup: processes that may be under
// the same control.
func (s *Scanner) readCgroup(r *record) error {
	f, err := os.Open(filepath.Join(s.cfg.Proc, strconv.Itoa(r.pid), "cgroup"))
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxCgroup))
	pod, container := ParseCgroup(b)
	r.group, r.process.Pod, r.process.Container = cmp.Or(container, string(b)), pod, container
	return err
}

// examineAll examines processes until that has taken too long. The others stay due.
func (s *Scanner) examineAll(due []*record, now time.Time, most time.Duration) {
	began, slow := time.Now(), 0
	for _, r := range due {
		if slow == maxSlow || time.Since(began) >= most || s.stopped() {
			return
		}
		if !s.mayExamine(r.group) {
			continue
		}
		limit := maxInterval
		if r.awaitsRing {
			limit = maxIntervalNIXL
		}
		r.due, r.wait = now.Add(min(r.wait, limit)), min(2*r.wait, limit)
		size, err := s.size(r.pid)
		switch {
		case err != nil:
			delete(s.records, r.pid) // it has exited, or the next scan sees it again
			continue
		case size == r.mapped.size && r.unchanged < maxUnchanged:
			r.unchanged++
			continue
		}
		r.unchanged = 0
		before := time.Now()
		if s.examine(r, size) {
			continue
		}
		slow++
		began = began.Add(time.Since(before)) // waiting takes no processor time
	}
}

// mayExamine reports whether another process of a group may hang.
func (s *Scanner) mayExamine(group string) bool {
	same := 0
	for _, x := range s.hanging {
		if x.record.group == group {
			same++
		}
	}
	return len(s.hanging) < maxHanging && same < maxHangingGroup
}

// examine examines a process. If that takes too long, it reports false, and finish uses the
// result later.
func (s *Scanner) examine(r *record, size string) bool {
	q := s.request
	q.pid, q.size, q.before, q.intact = r.pid, size, r.process, r.intact
	x := &examination{record: r, done: make(chan struct{})}
	go func() {
		defer close(x.done)
		x.result = q.examine()
	}()
	timeout := time.NewTimer(examineTimeout)
	defer timeout.Stop()
	select {
	case <-x.done:
		s.apply(r, x.result)
		return true
	case <-s.cfg.Stopped:
	case <-timeout.C:
	}
	r.hanging = x
	s.hanging = append(s.hanging, x)
	return false
}

// finish applies the results of slow examinations that have ended since.
func (s *Scanner) finish() {
	s.hanging = slices.DeleteFunc(s.hanging, func(x *examination) bool {
		select {
		case <-x.done:
		default:
			return false
		}
		if s.records[x.record.pid] == x.record {
			x.record.hanging = nil
			s.apply(x.record, x.result)
		}
		return true
	})
}

// apply updates a record with a result. After an error, the next examination may succeed.
func (s *Scanner) apply(r *record, a result) {
	switch {
	case errors.Is(a.err, ErrExited):
		delete(s.records, r.pid)
	case a.err != nil:
		r.err = a.err
	default:
		r.result = a
		if soon := s.last.Add(maxIntervalNIXL); r.awaitsRing && r.due.After(soon) {
			r.due = soon
		}
	}
}

// size returns the total size of a process's mappings, as in /proc/PID/statm.
func (s *Scanner) size(pid int) (string, error) {
	f, err := os.Open(s.cfg.Proc + "/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return "", err
	}
	defer f.Close()
	var b [32]byte
	n, err := io.ReadFull(f, b[:])
	size, _, ok := strings.Cut(string(b[:n]), " ")
	if !ok {
		return "", err
	}
	return size, nil
}

// found returns the processes that use NIXL.
func (s *Scanner) found() []Process {
	list := make([]Process, 0, 16)
	for _, r := range s.records {
		if r.usesNIXL {
			list = append(list, r.process)
		}
	}
	slices.SortFunc(list, func(a, b Process) int { return cmp.Compare(a.PID, b.PID) })
	return list
}

// scanError returns an error if examinations of an earlier scan are still running.
func (s *Scanner) scanError() error {
	if len(s.hanging) == 0 {
		return nil
	}
	return fmt.Errorf("%d processes can't be examined, such as process %d: %w", len(s.hanging), s.hanging[0].record.pid, errHangs)
}

// permissionError returns an error if this process lacks permissions.
func (s *Scanner) permissionError() error {
	denied := 0
	for _, r := range s.records {
		if r.hidden || errors.Is(r.err, fs.ErrPermission) {
			denied++
		}
	}
	if denied == 0 || denied <= len(s.entries)/2 && isPrivileged() {
		return nil
	}
	return fmt.Errorf("%d of %d processes can't be examined: %w; grant CAP_SYS_PTRACE and CAP_DAC_OVERRIDE, or run as root",
		denied, len(s.entries), fs.ErrPermission)
}

// isPrivileged reports whether this process has the capabilities to examine all others.
// Some processes can't be examined even with these.
func isPrivileged() bool {
	b, err := os.ReadFile("/proc/self/status")
	return err == nil && privileged(b)
}
