// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Scanner finds the processes of NIXL agents. It isn't safe for concurrent use.
type Scanner struct {
	Config
	maxScan time.Duration

	records map[int]*record // by PID
	hanging []*record       // whose examinations are still running
	last    time.Time       // time of the last scan
	began   time.Time       // when it began, by the wall clock
	unseen  map[string]time.Time
}

// record describes a process. The PID may belong to another process now.
type record struct {
	state
	exe string // target of the exe link when it was visited; "" if it can't be read
	err error  // of the last examination

	visited   time.Time     // when the exe link was last read
	size      string        // total size of the mappings, as in /proc/PID/statm
	unchanged int           // how often in a row the mappings weren't read; see maxUnchanged
	examined  time.Time     // when the mappings were last read, by the wall clock
	due       time.Time     // next examination
	wait      time.Duration // interval until the examination after that

	// An examination runs on a goroutine of its own, because the process may block it.
	began time.Time
	done  chan struct{} // closed when it has ended; nil after that
	found state         // valid after done is closed, as is fault
	fault error
}

// New returns a Scanner. It reads nothing before Scan.
func New(cfg Config) *Scanner {
	cfg.Proc = cmp.Or(cfg.Proc, "/proc")
	return &Scanner{Config: cfg, maxScan: maxScan}
}

// Scan returns all processes that use NIXL, ordered by PID. If all is set, it examines all that have
// changed, because the process is sought that has a file mapped. If some processes can't be examined, Scan
// returns the others and an error. The error wraps [fs.ErrPermission] if this process lacks
// capabilities. Scan takes a limited time; see [Scanner.Seen].
func (s *Scanner) Scan(now time.Time, all bool) ([]Process, error) {
	s.began = time.Now()
	s.finish()
	if err := s.list(now, all); err != nil {
		return nil, fmt.Errorf("find processes: %w", err)
	}
	hanging := len(s.hanging)
	most := max(min(now.Sub(s.last)/scanShare, s.maxScan), min(minScan, s.maxScan))
	s.last = now
	hanging += s.examineAll(s.due(now, all), now, most)
	found := make([]Process, 0, 16)
	for _, r := range s.records {
		if r.usesNIXL() {
			found = append(found, s.withEnvironment(r))
		}
	}
	slices.SortFunc(found, func(a, b Process) int { return cmp.Compare(a.PID, b.PID) })
	return found, errors.Join(s.hangError(hanging), s.permissionError(), s.hiddenError(len(found)))
}

// Seen returns when the mappings of the processes of a group were read; see [Process.Group]. If the last scan was
// cut short, that was before the scan.
func (s *Scanner) Seen(group string) time.Time {
	if seen, ok := s.unseen[group]; ok {
		return seen
	}
	return s.began
}

// In returns any process in a mount namespace that the last scan has listed; see [Process.MountNS].
func (s *Scanner) In(namespace string) (Process, bool) {
	for _, r := range s.records {
		if r.MountNS == namespace {
			return r.Process, true
		}
	}
	return Process{}, false
}

// withEnvironment returns a process. If neither its environment nor that of an ancestor is known, it has what all
// processes of its container have that are known.
func (s *Scanner) withEnvironment(r *record) Process {
	p := r.Process
	if p.Known {
		return p
	}
	for _, other := range s.records {
		if !other.Own || other.Group != p.Group || other.MountNS != p.MountNS {
			continue
		}
		if !p.Known {
			p.Env, p.Attributes, p.Known = maps.Clone(other.Env), maps.Clone(other.Attributes), true
		}
		maps.DeleteFunc(p.Env, func(name, value string) bool { return other.Env[name] != value })
		maps.DeleteFunc(p.Attributes, func(key, value string) bool { return other.Attributes[key] != value })
	}
	p.Known = p.Known && len(p.Env)+len(p.Attributes) > 0
	return p
}

// list updates the records of all processes, except for this one, which has rings mapped, but
// isn't an agent. A process that has run for long without NIXL is visited less often, unless all is set.
func (s *Scanner) list(now time.Time, all bool) error {
	files, err := os.ReadDir(s.Proc)
	if err != nil {
		return err
	}
	self, _ := os.Readlink(s.Proc + "/self")
	before := s.records
	s.records = make(map[int]*record)
	for _, f := range files {
		pid, err := strconv.Atoi(f.Name())
		if err != nil || pid <= 0 || f.Name() == self {
			continue
		}
		r := before[pid]
		if r == nil || all || r.usesNIXL() || now.Sub(r.visited) >= r.wait/visitShare {
			r = s.visit(pid, r, now)
		}
		if r != nil {
			s.records[pid] = r
		}
	}
	return nil
}

// visit returns the record of a listed process, or nil if it is a kernel thread or a zombie,
// which have no program. A process that is new, or has executed another program, is due. If a
// process that doesn't use NIXL has exited, and its PID was reused for the same program since the
// last scan, only the next examination detects that.
func (s *Scanner) visit(pid int, r *record, now time.Time) *record {
	exe, err := os.Readlink(pidDir(s.Proc, pid) + "/exe")
	denied := errors.Is(err, fs.ErrPermission)
	switch {
	case err != nil && !denied:
		return nil
	case r != nil && r.exe == exe && (!r.usesNIXL() || Runs(s.Proc, r.Process)):
		r.visited = now
		return r
	}
	r = &record{exe: exe, visited: now, due: now, wait: minInterval}
	r.PID = pid
	if denied {
		r.err = err
	}
	return r
}

// due returns the processes to examine. Groups take turns, so one that has many processes
// delays no other. Those whose processes hang come last.
func (s *Scanner) due(now time.Time, all bool) []*record {
	var due []*record
	for _, r := range s.records {
		if all && r.usesNIXL() { // one ring may have replaced another
			r.size = ""
		}
		if r.exe == "" || r.done != nil || !all && r.due.After(now) {
			continue
		}
		if s.readCgroup(r) == nil { // else it has exited
			due = append(due, r)
		}
	}
	slices.SortFunc(due, func(a, b *record) int { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.PID, b.PID)) })
	turns, turn := make(map[string]int), make(map[*record]int)
	for _, x := range s.hanging {
		turns[x.Group] += len(due)
	}
	for _, r := range due {
		turn[r] = turns[r.Group]
		turns[r.Group]++
	}
	slices.SortStableFunc(due, func(a, b *record) int { return cmp.Compare(turn[a], turn[b]) })
	return due
}

// readCgroup sets the pod, the container and the group of a process when it is first seen, and
// after an exec. The process can't block this. A user can create any number of cgroups.
func (s *Scanner) readCgroup(r *record) error {
	if r.Group != "" {
		return nil
	}
	b, err := os.ReadFile(pidDir(s.Proc, r.PID) + "/cgroup")
	g := parseCgroup(b)
	r.Pod, r.Container, r.Unit, r.Group = g.pod, g.container, g.unit, cmp.Or(g.outer, string(b))
	if _, user, ok := strings.Cut(string(b), "/user.slice/"); ok && g.outer == "" {
		r.Group, _, _ = strings.Cut(user, "/")
	}
	return err
}

// examineAll examines processes until that has taken too long. The others stay due, and are
// unseen, as is a process whose examination hangs. It returns the number of processes that it
// doesn't examine because too many others hang.
func (s *Scanner) examineAll(due []*record, now time.Time, most time.Duration) (skipped int) {
	s.unseen = make(map[string]time.Time)
	for i, r := range due {
		if i > 0 && time.Since(s.began) >= most {
			for _, r := range due[i:] {
				s.notSeen(r)
			}
			break
		}
		if !s.mayExamine(r.Group) {
			skipped++
			continue
		}
		statm, err := readOnce(pidDir(s.Proc, r.PID) + "/statm")
		size, _, _ := strings.Cut(string(statm), " ")
		switch {
		case err != nil:
			delete(s.records, r.PID) // it has exited, or the next scan sees it again
			continue
		case size == r.size && r.unchanged < maxUnchanged:
			r.unchanged, r.examined = r.unchanged+1, time.Now()
		default:
			r.unchanged, r.size = 0, size
			if !s.examine(r) {
				s.notSeen(r)
			}
		}
		limit := maxInterval
		if r.awaitsRing() {
			limit = maxIntervalNIXL
		}
		if !r.due.After(now) {
			r.due, r.wait = now.Add(min(r.wait, limit)), min(r.wait+r.wait/4, limit)
		}
	}
	return skipped
}

// notSeen remembers that a process of a group hasn't been examined in time.
func (s *Scanner) notSeen(r *record) {
	if seen, ok := s.unseen[r.Group]; !ok || r.examined.Before(seen) {
		s.unseen[r.Group] = r.examined
	}
}

// mayExamine reports whether another process of a group may hang.
func (s *Scanner) mayExamine(group string) bool {
	same := 0
	for _, x := range s.hanging {
		if x.Group == group {
			same++
		}
	}
	return len(s.hanging) < maxHanging && same < maxHangingGroup
}

// examine examines a process. If that takes too long, it reports false, and finish uses the
// result later.
func (s *Scanner) examine(r *record) bool {
	done := make(chan struct{})
	r.began, r.done = time.Now(), done
	go func() {
		defer close(done)
		r.found, r.fault = s.Config.examine(r.state)
	}()
	select {
	case <-done:
		s.apply(r)
		return true
	case <-time.After(examineTimeout):
		s.hanging = append(s.hanging, r)
		return false
	}
}

// finish applies the results of slow examinations that have ended since.
func (s *Scanner) finish() {
	s.hanging = slices.DeleteFunc(s.hanging, func(r *record) bool {
		select {
		case <-r.done:
			s.apply(r)
			return true
		default:
			return false
		}
	})
}

// apply updates the record of a process. After an error, the next examination may succeed.
func (s *Scanner) apply(r *record) {
	r.done, r.err, r.examined = nil, r.fault, r.began
	switch {
	case s.records[r.PID] != r: // another process has the PID now
	case errors.Is(r.err, ErrExited):
		delete(s.records, r.PID)
	case r.err != nil:
		r.size = ""
	default:
		r.state = r.found
	}
}

// hangError returns an error if n processes hang since an earlier scan, or aren't examined because others hang.
func (s *Scanner) hangError(n int) error {
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%d processes can't be examined, such as process %d: %w", n, s.hanging[0].PID, errHangs)
}

// permissionError returns an error if this process lacks permissions. Some processes can't be
// examined even with all of them.
func (s *Scanner) permissionError() error {
	denied := 0
	for _, r := range s.records {
		if errors.Is(r.err, fs.ErrPermission) {
			denied++
		}
	}
	if denied == 0 {
		return nil
	}
	if self, err := os.ReadFile("/proc/self/status"); err == nil && denied <= len(s.records)/2 && privileged(self) {
		return nil
	}
	return fmt.Errorf("%d of %d processes can't be examined: %w; grant CAP_SYS_PTRACE and CAP_DAC_OVERRIDE, or run as root",
		denied, len(s.records), fs.ErrPermission)
}

// initialPIDs is the PID namespace of the host: PROC_PID_INIT_INO in Linux.
const initialPIDs = "pid:[4026531836]"

// hiddenError returns an error if this process doesn't see the processes of others.
func (s *Scanner) hiddenError(found int) error {
	self, err := os.ReadFile("/proc/self/status")
	if _, hidden := os.Lstat(pidDir(s.Proc, 1)); errors.Is(hidden, fs.ErrNotExist) && err == nil && !privileged(self) {
		return fmt.Errorf("the processes of other users are hidden: %w; grant CAP_SYS_PTRACE, or remove hidepid= from the mount options of %s, "+
			"or ProtectProc= from the unit", fs.ErrPermission, s.Proc)
	}
	namespace, _ := os.Readlink(s.Proc + "/self/ns/pid")
	own, _ := os.Readlink(s.Proc + "/self/ns/mnt")
	first, _ := os.Readlink(s.Proc + "/1/ns/mnt")
	if found == 0 && namespace != "" && namespace != initialPIDs && own == first {
		return errors.New("only the processes of this container are visible; set hostPID: true, or, in a sidecar, shareProcessNamespace: true")
	}
	return nil
}
