// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"time"
)

// Record records a completed packet. The packet's row is in the file when Record
// returns or, in a burst of packets, at most a millisecond later; see the package
// documentation. If ctx has a sampled span, the packet's measurements get exemplars
// with its trace ID. Cancellation of ctx has no effect.
//
// If the row can't be written, Record returns the error; metrics and summary still
// include the packet. After [Session.Close], Record returns [os.ErrClosed] and
// doesn't count the packet.
func (s *Session) Record(ctx context.Context, p Packet) error {
	if s == nil {
		return nil
	}
	p.Duration = max(p.Duration, 0)
	p.Memory = max(p.Memory, 0)
	var message, errorType string
	if p.Err != nil {
		// Without the lock, because these methods may be user code.
		message, errorType = clean(p.Err.Error()), p.errorType()
	}
	to, err := s.log(&p, message, errorType)
	if to.series != nil {
		s.metrics.record(ctx, to, p.Duration, p.Memory)
	}
	return err
}

// log counts a packet and writes its row, both under the lock, so that the rows are
// in the order of their timestamps. It returns the packet's data points, or none
// after Close. Recording them doesn't need the lock.
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

// Flush writes the rows of a burst that are still in memory. It returns the same
// errors as [Session.Record].
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

// writeLate writes the last rows of a burst if no further packet caused a write. The
// next Record and Close return its errors.
func (s *Session) writeLate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = false
	if !s.closed {
		_ = s.rows.flush(s.clock())
	}
}
