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

// examination asks a question on a goroutine of its own, because the process may
// keep it waiting.
type examination struct {
	pid    int
	group  string // of processes that may be under the same control
	done   chan struct{}
	answer answer // after done is closed
}

// examine examines a process and notes the answer in its record. If the process
// keeps it waiting, collect does that later. Mappings are read if their size is
// given. The error is [ErrExited].
func (s *Scanner) examine(r *record, size string) error {
	group, err := s.readCgroup(r)
	if err != nil {
		return err
	}
	if !s.admit(group) {
		return nil
	}
	q := question{
		proc: s.cfg.Proc, pid: r.pid, wanted: s.wanted, size: size,
		start: r.process.Start, env: r.process.Env, intact: r.intact,
	}
	x := &examination{pid: r.pid, group: group, done: make(chan struct{})}
	go func() {
		defer close(x.done)
		x.answer = q.examine()
	}()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case <-x.done:
		return s.note(r, x.answer)
	case <-timeout.C:
		r.hanging = x
		s.hanging = append(s.hanging, x)
		return nil
	}
}

// readCgroup fills in a process's pod and container, which the process can't keep
// waiting for. It returns what the processes that may be under the same control
// have in common: the container, or the cgroup.
func (s *Scanner) readCgroup(r *record) (group string, err error) {
	f, err := os.Open(filepath.Join(s.cfg.Proc, strconv.Itoa(r.pid), "cgroup"))
	if err != nil {
		return "", exitedOr(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxCgroup))
	if err != nil {
		return "", exitedOr(err)
	}
	r.pod, r.container = ParseCgroup(b)
	if r.container != "" {
		return r.container, nil
	}
	return string(b), nil
}

// Examine returns what is known about one process, whether it uses NIXL or not. It is
// safe for concurrent use, and may block for as long as the process wants.
func (s *Scanner) Examine(pid int) (Process, error) {
	r := &record{entry: entry{pid: pid}}
	if _, err := s.readCgroup(r); err != nil {
		return Process{}, err
	}
	a := question{proc: s.cfg.Proc, pid: pid, wanted: s.wanted}.examine()
	a.process.Pod, a.process.Container = r.pod, r.container
	return a.process, a.err
}

// admit reports whether a process of a group may be examined.
func (s *Scanner) admit(group string) bool {
	same := 0
	for _, x := range s.hanging {
		if x.group == group {
			same++
		}
	}
	return len(s.hanging) < maxHanging && same < maxHangingGroup
}

// collect notes the answers of examinations that have ended after all.
func (s *Scanner) collect() {
	s.hanging = slices.DeleteFunc(s.hanging, func(x *examination) bool {
		select {
		case <-x.done:
		default:
			return false
		}
		if r := s.records[x.pid]; r != nil && r.hanging == x {
			r.hanging = nil
			if s.note(r, x.answer) != nil {
				delete(s.records, x.pid)
			}
		}
		return true
	})
}

// note takes an answer over. The error is [ErrExited]. After any other error, the
// next examination may do better.
func (s *Scanner) note(r *record, a answer) error {
	s.allowance -= a.read
	r.denied = errors.Is(a.err, fs.ErrPermission)
	switch {
	case errors.Is(a.err, ErrExited):
		return ErrExited
	case a.err == nil:
		r.process, r.uses, r.waits, r.intact, r.mapped = a.process, a.uses, a.waits, a.intact, a.mapped
		r.process.Pod, r.process.Container = r.pod, r.container
		if r.uses && r.container != "" {
			r.process.MountNS += " " + r.container
		}
	}
	if soon := s.last.Add(lastWaitNIXL); r.waits && r.due.After(soon) {
		r.due = soon
	}
	return nil
}
