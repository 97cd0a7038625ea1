package process

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// Scanner finds the processes of NIXL agents. It must not be used by several
// goroutines at the same time.
type Scanner struct {
	cfg    Config
	wanted map[string]bool // variables that are kept

	records   map[int]*record // by PID
	hanging   []*examination  // have taken too long, and haven't returned
	last      time.Time       // of the last scan
	allowance int             // bytes of mappings that may be read

	entries []entry
	listing [32 << 10]byte
	link    [4 << 10]byte
}

// record is what is known of a process, or of one that had its PID before.
type record struct {
	entry
	exe string // as the exe link has it

	pod, container string
	process        Process
	uses           bool // NIXL
	intact         bool // the environment is known
	denied         bool // the process can't be examined

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
// there are none: it wraps [fs.ErrPermission] if some processes can't be examined.
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
	denied := 0
	current := make(map[int]*record, len(s.entries))
	for _, e := range s.entries {
		if e.pid == self {
			continue
		}
		r, err := s.visit(e, now)
		switch {
		case errors.Is(err, fs.ErrPermission):
			denied++
		case err == nil:
			current[e.pid] = r
		}
	}
	s.records = current
	s.readMappings(now)
	return s.found(), s.problems(denied)
}

// refill grants the time since the last scan its share of reading.
func (s *Scanner) refill(now time.Time) {
	if elapsed := now.Sub(s.last); !s.last.IsZero() && elapsed > 0 {
		granted := min(elapsed.Seconds()*mappingRate, mappingBurst)
		s.allowance = min(s.allowance+int(granted), mappingBurst)
	}
	s.last = now
}

// visit returns the record of a process in the listing. It examines a process that
// is new, or runs another program than before. The error is of a process without
// a program: it has exited or belongs to the kernel.
func (s *Scanner) visit(e entry, now time.Time) (*record, error) {
	dir := filepath.Join(s.cfg.Proc, strconv.Itoa(e.pid))
	n, err := syscall.Readlink(dir+"/exe", s.link[:])
	if err != nil {
		return nil, err
	}
	r := s.records[e.pid]
	if r != nil && r.inode != e.inode {
		if stat, err := readStat(dir); err != nil || stat.Start != r.process.Start {
			r = nil
		} else {
			r.inode = e.inode
		}
	}
	if r != nil && r.exe == string(s.link[:n]) {
		return r, nil
	}
	r = &record{entry: e, exe: string(s.link[:n]), due: now, wait: firstWait}
	return r, s.examine(r, false)
}

// readMappings examines processes that are due, those that have waited longest
// first, as long as the allowance lasts.
func (s *Scanner) readMappings(now time.Time) {
	var due []*record
	for _, r := range s.records {
		if !r.due.After(now) && r.hanging == nil {
			due = append(due, r)
		}
	}
	slices.SortFunc(due, func(a, b *record) int { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.pid, b.pid)) })
	for _, r := range due {
		if s.allowance <= 0 {
			return
		}
		r.due, r.wait = now.Add(r.wait), min(2*r.wait, lastWait)
		if s.examine(r, true) != nil {
			delete(s.records, r.pid)
		}
	}
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
func (s *Scanner) problems(denied int) error {
	for _, r := range s.records {
		if r.denied {
			denied++
		}
	}
	var errs []error
	if denied > 0 {
		errs = append(errs, fmt.Errorf("%d of %d processes can't be examined: %w; grant CAP_SYS_PTRACE and CAP_DAC_OVERRIDE, or run as root",
			denied, len(s.entries), fs.ErrPermission))
	}
	if n := len(s.hanging); n > 0 {
		errs = append(errs, fmt.Errorf("%d processes can't be examined, such as %d: %w", n, s.hanging[0].pid, errHangs))
	}
	return errors.Join(errs...)
}
