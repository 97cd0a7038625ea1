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

// Scanner finds the processes of NIXL agents. It must not be used by several
// goroutines at the same time, apart from Examine.
type Scanner struct {
	cfg    Config
	wanted map[string]bool // variables that are kept

	records   map[int]*record // by PID
	hanging   []*examination  // have taken too long, and haven't returned
	last      time.Time       // of the last scan
	allowance int             // bytes of mappings that may be read
	scans     int

	entries []entry
	listing [32 << 10]byte
	link    [4 << 10]byte
}

// record is what is known of a process, or of one that had its PID before.
type record struct {
	entry
	scan    int       // the last one that has listed it
	exe     string    // as the exe link has it; "" if there is none, or it is hidden
	hidden  bool      // the exe link can't be read
	since   time.Time // when exe was read first
	checked time.Time // when it was read last

	pod, container string
	process        Process
	uses           bool // NIXL
	waits          bool // as answer has it
	intact         bool // the environment is known
	denied         bool // the environment or the mappings can't be read
	mapped         mapped
	unchanged      int // how often in a row the mappings weren't read, as their size was the same

	due     time.Time     // when its mappings are read
	wait    time.Duration // until they are read again
	hanging *examination  // has taken too long; nil if none has
}

// New returns a Scanner. It reads nothing before Scan.
func New(cfg Config) *Scanner {
	cfg.Proc = cmp.Or(cfg.Proc, "/proc")
	return &Scanner{
		cfg: cfg, wanted: cfg.variables(),
		records: make(map[int]*record), allowance: mappingBurst,
	}
}

// Scan returns all processes that use NIXL now, by PID. An error doesn't mean that
// there are none: it wraps [fs.ErrPermission] if processes can't be examined because
// this one lacks capabilities.
//
// It takes milliseconds, but up to a second for each process that hangs, once.
func (s *Scanner) Scan(now time.Time) ([]Process, error) {
	s.refill(now)
	var err error
	if s.entries, err = list(s.cfg.Proc, s.listing[:], s.entries[:0]); err != nil {
		return nil, fmt.Errorf("find processes: %w", err)
	}
	s.collect()
	link, _ := os.Readlink(filepath.Join(s.cfg.Proc, "self"))
	self, _ := strconv.Atoi(link) // it has rings mapped, but is no agent
	s.scans++
	for _, e := range s.entries {
		if e.pid != self {
			s.visit(e, now)
		}
	}
	maps.DeleteFunc(s.records, func(_ int, r *record) bool { return r.scan != s.scans })
	s.readMappings(now)
	return s.found(), s.problems()
}

// refill grants the time since the last scan its share of reading.
func (s *Scanner) refill(now time.Time) {
	if elapsed := now.Sub(s.last); !s.last.IsZero() && elapsed > 0 {
		granted := min(elapsed.Seconds()*mappingRate, mappingBurst)
		s.allowance = min(s.allowance+int(granted), mappingBurst)
	}
	s.last = now
}

// visit examines a process in the listing if it is new, or runs another program
// than before.
func (s *Scanner) visit(e entry, now time.Time) {
	r := s.records[e.pid]
	if r != nil && r.inode != e.inode && !s.lives(r) {
		r = nil
	}
	if r != nil {
		r.inode, r.scan = e.inode, s.scans
		if now.Sub(r.since) > youth && now.Sub(r.checked) < execInterval {
			return
		}
		r.checked = now
	}
	// Tasks of the kernel and processes that have exited have no program.
	n, err := syscall.Readlink(s.cfg.Proc+"/"+strconv.Itoa(e.pid)+"/exe", s.link[:])
	exe, hidden := s.link[:max(n, 0)], errors.Is(err, fs.ErrPermission)
	if r != nil && r.exe == string(exe) && r.hidden == hidden {
		return
	}
	r = &record{
		entry: e, scan: s.scans, exe: string(exe), hidden: hidden,
		since: now, checked: now, due: now, wait: firstWait,
	}
	s.records[e.pid] = r
	if r.exe != "" && s.examine(r, "") != nil {
		delete(s.records, e.pid)
	}
}

// lives reports whether the process that a record is of still has its PID.
func (s *Scanner) lives(r *record) bool {
	stat, err := readStat(filepath.Join(s.cfg.Proc, strconv.Itoa(r.pid)))
	return err == nil && stat.Start == r.process.Start
}

// readMappings examines processes that are due, those that have waited longest
// first, as long as the allowance lasts.
func (s *Scanner) readMappings(now time.Time) {
	var due []*record
	for _, r := range s.records {
		if r.exe != "" && r.hanging == nil && !r.due.After(now) {
			due = append(due, r)
		}
	}
	slices.SortFunc(due, func(a, b *record) int { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.pid, b.pid)) })
	for _, r := range due {
		if s.allowance <= 0 {
			return
		}
		limit := lastWait
		if r.waits {
			limit = lastWaitNIXL
		}
		r.due, r.wait = now.Add(min(r.wait, limit)), min(2*r.wait, limit)
		size, err := s.size(r.pid)
		switch {
		case err == nil && size == r.mapped.size && r.unchanged < maxUnchanged:
			r.unchanged++
			continue
		case err == nil:
			r.unchanged = 0
			err = s.examine(r, size)
		}
		if err != nil {
			delete(s.records, r.pid)
		}
	}
}

// size returns the size of all mappings of a process as its statm file has it.
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
		if r.uses {
			list = append(list, r.process)
		}
	}
	slices.SortFunc(list, func(a, b Process) int { return cmp.Compare(a.PID, b.PID) })
	return list
}

// problems returns an error about processes that couldn't be examined.
func (s *Scanner) problems() error {
	denied := 0
	for _, r := range s.records {
		if r.denied || r.hidden {
			denied++
		}
	}
	var errs []error
	if denied > 0 && (denied > len(s.entries)/2 || !isPrivileged()) {
		errs = append(errs, fmt.Errorf("%d of %d processes can't be examined: %w; grant CAP_SYS_PTRACE and CAP_DAC_OVERRIDE, or run as root",
			denied, len(s.entries), fs.ErrPermission))
	}
	if n := len(s.hanging); n > 0 {
		errs = append(errs, fmt.Errorf("%d processes can't be examined, such as %d: %w", n, s.hanging[0].pid, errHangs))
	}
	return errors.Join(errs...)
}

// isPrivileged reports whether this process may examine all others. A few protect
// themselves even from one that may.
func isPrivileged() bool {
	b, err := os.ReadFile("/proc/self/status")
	return err == nil && privileged(b)
}
