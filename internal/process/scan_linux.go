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

// Scanner finds the processes of NIXL agents. Only Examine is safe for concurrent use.
type Scanner struct {
	cfg    Config
	wanted map[string]int // see Config.variables
	filter filter

	records   map[int]*record // by PID
	hanging   []*examination  // examinations that exceeded examineTimeout and are still running
	last      time.Time       // time of the last scan
	allowance int             // bytes of mappings that may be read now
	groups    map[string]cost // what examinations have cost, by group; see readCgroup
	scans     int

	entries []entry
	listing [32 << 10]byte
	link    [4 << 10]byte
}

// record describes a process. The PID may belong to another process now.
type record struct {
	entry
	scan    int       // the last scan that has listed the process
	exe     string    // target of the exe link; "" if there is none, or it is hidden
	hidden  bool      // the exe link can't be read
	since   time.Time // when exe was first read
	checked time.Time // when exe was last read

	pod, container string
	group          string // see readCgroup
	process        Process
	usesNIXL       bool
	awaitsRing     bool // see result
	intact         bool // the environment is known
	denied         bool // the environment or the mappings can't be read
	mapped         mapped
	unchanged      int // how often in a row the mappings weren't read; see maxUnchanged

	due     time.Time     // next reading of the mappings
	wait    time.Duration // interval until the reading after that
	hanging *examination  // nil if none is hanging
}

// cost is what the examinations of a group have cost. It limits how much a container can delay
// the examinations of others.
type cost struct {
	read int           // bytes of mappings; decreases by mappingRate
	busy time.Duration // of the current scan
}

// New returns a Scanner. It reads nothing before Scan.
func New(cfg Config) *Scanner {
	cfg.Proc = cmp.Or(cfg.Proc, "/proc")
	return &Scanner{
		cfg: cfg, wanted: cfg.variables(), filter: newFilter(cfg.Attributes, cfg.Reserved),
		records: make(map[int]*record), allowance: mappingBurst, groups: make(map[string]cost),
	}
}

// Scan returns all processes that use NIXL, ordered by PID. If some processes can't be
// examined, it returns the others and an error. The error wraps [fs.ErrPermission] if
// this process lacks capabilities.
//
// A scan takes milliseconds. A process that hangs delays one scan by up to a second.
func (s *Scanner) Scan(now time.Time) ([]Process, error) {
	s.refill(now)
	var err error
	if s.entries, err = list(s.cfg.Proc, s.listing[:], s.entries[:0]); err != nil {
		return nil, fmt.Errorf("find processes: %w", err)
	}
	s.applyFinished()
	link, _ := os.Readlink(filepath.Join(s.cfg.Proc, "self"))
	self, _ := strconv.Atoi(link) // this process has rings mapped, but isn't an agent
	s.scans++
	for _, e := range s.entries {
		if s.stopped() {
			return nil, fmt.Errorf("find processes: %w", ErrStopped)
		}
		if e.pid != self {
			s.visit(e, now)
		}
	}
	maps.DeleteFunc(s.records, func(_ int, r *record) bool { return r.scan != s.scans })
	s.readMappings(now)
	return s.found(), s.scanError()
}

func (s *Scanner) stopped() bool {
	select {
	case <-s.cfg.Stopped:
		return true
	default:
		return false
	}
}

// refill begins a scan. It adds mappingRate for the time since the last scan to the allowance.
func (s *Scanner) refill(now time.Time) {
	granted := 0
	if elapsed := now.Sub(s.last); !s.last.IsZero() && elapsed > 0 {
		granted = int(min(elapsed.Seconds()*mappingRate, mappingBurst))
		s.allowance = min(s.allowance+granted, mappingBurst)
	}
	s.last = now
	for group, c := range s.groups {
		if c.read -= granted; c.read <= 0 {
			delete(s.groups, group)
		} else {
			s.groups[group] = cost{read: c.read}
		}
	}
}

// visit examines a listed process if it is new or has executed another program.
func (s *Scanner) visit(e entry, now time.Time) {
	r := s.records[e.pid]
	if r != nil && r.inode != e.inode && !s.sameProcess(r) {
		r = nil
	}
	if r != nil {
		r.inode, r.scan = e.inode, s.scans
		if now.Sub(r.since) > youngAge && now.Sub(r.checked) < execInterval {
			return
		}
		r.checked = now
	}
	// Kernel threads and zombies have no program.
	n, err := syscall.Readlink(s.cfg.Proc+"/"+strconv.Itoa(e.pid)+"/exe", s.link[:])
	exe, hidden := s.link[:max(n, 0)], errors.Is(err, fs.ErrPermission)
	if r != nil && r.exe == string(exe) && r.hidden == hidden {
		return
	}
	r = &record{
		entry: e, scan: s.scans, exe: string(exe), hidden: hidden,
		since: now, checked: now, due: now, wait: minInterval,
	}
	s.records[e.pid] = r
	if r.exe != "" && s.examine(r, "") != nil {
		delete(s.records, e.pid)
	}
}

// sameProcess reports whether the PID of a record still belongs to the same process.
func (s *Scanner) sameProcess(r *record) bool {
	stat, err := readStat(filepath.Join(s.cfg.Proc, strconv.Itoa(r.pid)))
	return err == nil && stat.Start == r.process.Start
}

// readMappings examines the processes that are due, in the order of their due times,
// until the allowance is used up. Half of it is reserved for containers that have used
// little of it.
func (s *Scanner) readMappings(now time.Time) {
	var due []*record
	for _, r := range s.records {
		if r.exe != "" && r.hanging == nil && !r.due.After(now) {
			due = append(due, r)
		}
	}
	slices.SortFunc(due, func(a, b *record) int { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.pid, b.pid)) })
	for _, r := range due {
		if s.allowance <= 0 || s.stopped() {
			return
		}
		if s.allowance <= mappingReserve && s.groups[r.group].read > mappingShare {
			continue
		}
		limit := maxInterval
		if r.awaitsRing {
			limit = maxIntervalNIXL
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

// scanError returns an error if processes couldn't be examined.
func (s *Scanner) scanError() error {
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
		errs = append(errs, fmt.Errorf("%d processes can't be examined, such as process %d: %w", n, s.hanging[0].pid, errHangs))
	}
	return errors.Join(errs...)
}

// isPrivileged reports whether this process has the capabilities to examine all others.
// Some processes can't be examined even with these.
func isPrivileged() bool {
	b, err := os.ReadFile("/proc/self/status")
	return err == nil && privileged(b)
}
