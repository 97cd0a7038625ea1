// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// examination runs a request on a separate goroutine, because the process may block it.
type examination struct {
	pid    int
	group  string // see readCgroup
	done   chan struct{}
	result result // valid after done is closed
}

// examine examines a process and updates its record. If the process blocks the
// examination, applyFinished updates the record later. Mappings are read if size isn't
// empty. The only error is [ErrExited].
func (s *Scanner) examine(r *record, size string) error {
	err := s.readCgroup(r)
	if err != nil {
		return err
	}
	if !s.mayExamine(r.group) {
		return nil
	}
	q := request{
		proc: s.cfg.Proc, pid: r.pid, pod: r.pod, wanted: s.wanted, filter: s.filter, size: size,
		start: r.process.Start, env: environment{r.process.Env, r.process.Attributes, r.intact},
	}
	began := time.Now()
	x := &examination{pid: r.pid, group: r.group, done: make(chan struct{})}
	go func() {
		defer close(x.done)
		x.result = q.examine()
	}()
	timeout := time.NewTimer(examineTimeout)
	defer timeout.Stop()
	select {
	case <-x.done:
		c := s.groups[r.group]
		s.groups[r.group] = cost{c.read, c.busy + time.Since(began)}
		return s.apply(r, x.result)
	case <-s.cfg.Stopped:
		return nil
	case <-timeout.C:
		r.hanging = x
		s.hanging = append(s.hanging, x)
		return nil
	}
}

// readCgroup sets the pod, the container and the group of a process. The process can't
// block this. The group is the container, or else the cgroup: processes that may be under
// the same control.
func (s *Scanner) readCgroup(r *record) error {
	f, err := os.Open(filepath.Join(s.cfg.Proc, strconv.Itoa(r.pid), "cgroup"))
	if err != nil {
		return exitedOr(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxCgroup))
	if err != nil {
		return exitedOr(err)
	}
	r.pod, r.container = ParseCgroup(b)
	if r.group = r.container; r.group == "" {
		r.group = string(b)
	}
	return nil
}

// Examine examines one process, whether it uses NIXL or not. It is safe for concurrent
// use. The process can block it indefinitely.
func (s *Scanner) Examine(pid int) (Process, error) {
	r := &record{entry: entry{pid: pid}}
	if err := s.readCgroup(r); err != nil {
		return Process{}, err
	}
	a := request{
		proc: s.cfg.Proc, pid: pid, pod: r.pod, wanted: s.wanted, filter: s.filter, size: "any",
	}.examine()
	a.process.Pod, a.process.Container = r.pod, r.container
	return a.process, a.err
}

// mayExamine reports whether the limits allow to examine another process in a group now.
func (s *Scanner) mayExamine(group string) bool {
	if s.groups[group].busy >= maxBusy {
		return false
	}
	same := 0
	for _, x := range s.hanging {
		if x.group == group {
			same++
		}
	}
	return len(s.hanging) < maxHanging && same < maxHangingGroup
}

// applyFinished applies the results of hanging examinations that have finished since.
func (s *Scanner) applyFinished() {
	s.hanging = slices.DeleteFunc(s.hanging, func(x *examination) bool {
		select {
		case <-x.done:
		default:
			return false
		}
		if r := s.records[x.pid]; r != nil && r.hanging == x {
			r.hanging = nil
			if s.apply(r, x.result) != nil {
				delete(s.records, x.pid)
			}
		}
		return true
	})
}

// apply updates a record from a result. The only error is [ErrExited]; after other
// errors, the next examination may succeed.
func (s *Scanner) apply(r *record, a result) error {
	s.allowance -= a.read
	if a.read > 0 {
		c := s.groups[r.group]
		s.groups[r.group] = cost{c.read + a.read, c.busy}
	}
	r.denied = errors.Is(a.err, fs.ErrPermission)
	switch {
	case errors.Is(a.err, ErrExited):
		return ErrExited
	case a.err == nil:
		r.process, r.usesNIXL, r.awaitsRing, r.intact, r.mapped = a.process, a.usesNIXL, a.awaitsRing, a.intact, a.mapped
		r.process.Pod, r.process.Container = r.pod, r.container
		if r.usesNIXL && r.container != "" {
			r.process.MountNS += " " + r.container
		}
	}
	if soon := s.last.Add(maxIntervalNIXL); r.awaitsRing && r.due.After(soon) {
		r.due = soon
	}
	return nil
}
