// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"time"
)

// Record records a packet that ended. The packet's row is in the file when
// Record returns or, in a burst of packets, at most a millisecond later; see
// the package documentation. A span in ctx that is sampled becomes the
// exemplar of the packet's measurements; ctx has no other effect.
//
// Record returns the error of writing the row, such as a full disk; metrics
// and summary include the packet nevertheless. After [Session.Close] it
// returns [os.ErrClosed], and the packet isn't counted.
func (s *Session) Record(ctx context.Context, p Packet) error {
	if s == nil {
		return nil
	}
	p.Duration = max(p.Duration, 0)
	p.Memory = max(p.Memory, 0)
	var message, errorType string
	if p.Err != nil {
		// Before the lock, because these methods may be anybody's code.
		message, errorType = clean(p.Err.Error()), p.errorType()
	}
	to, err := s.log(&p, message, errorType)
	if to.series != nil {
		s.metrics.record(ctx, to, p.Duration, p.Memory)
	}
	return err
}

// log counts a packet and writes its row, both under one lock so that the
// rows are in the order of their timestamps. It returns the data points that
// the packet goes to, none after Close. Measuring them needs no lock.
func (s *Session) log(p *Packet, message, errorType string) (points, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return points{}, s.errClosed("record packet %d", p.ID)
	}
	now := s.clock()
	if p.End.IsZero() {
		p.End = now
	}
	r := s.routes.of(p)
	s.totals.add(r.inSummary, r.selection, r.device, p.Duration, p.Err == nil)

	to := points{series: r.ok, expert: s.routes.expert(r, p.Expert)}
	if p.Err != nil {
		to.series = s.routes.failure(r, errorType)
	}
	if p.fellBack() {
		to.fallback = s.routes.fallback(r, p)
	}
	return to, s.writeRow(r, p, message, now)
}

func (s *Session) writeRow(r *route, p *Packet, message string, now time.Time) error {
	l := s.rows
	if l == nil {
		return s.err
	}
	l.waiting = appendRow(l.waiting, p.End, r.head, r.tail, p, message)
	if err := l.add(now); err != nil {
		return fmt.Errorf("record packet %d of session %q: %w", p.ID, s.name, err)
	}
	if len(l.waiting) > 0 && !s.armed {
		s.armed = true
		if s.late == nil {
			s.late = time.AfterFunc(writeDelay, s.writeLate)
		} else {
			s.late.Reset(writeDelay)
		}
	}
	return nil
}

// Flush writes the rows of a burst that are still in memory. Its errors are
// those of [Session.Record].
func (s *Session) Flush() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return s.errClosed("flush")
	case s.rows == nil:
		return s.err
	}
	if err := s.rows.flush(s.clock()); err != nil {
		return fmt.Errorf("flush session %q: %w", s.name, err)
	}
	return nil
}

// writeLate writes the last rows of a burst. No packet followed that would
// have written them. Errors show at the next Record and at Close.
func (s *Session) writeLate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = false
	if !s.closed {
		_ = s.rows.flush(s.clock())
	}
}
