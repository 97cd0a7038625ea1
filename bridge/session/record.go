package session

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// Record records a packet that ended. Its row is in the file when Record
// returns, or shortly after where packets come in a burst; the package's
// documentation says when. The errors are those of writing rows, such as a
// full disk, and ErrClosed after Close; on any but the latter the packet is in
// metrics and summary all the same.
func (s *Session) Record(p Packet) error {
	p.Duration = max(p.Duration, 0)
	p.Memory = max(p.Memory, 0)
	var message, errorType string
	if p.Err != nil {
		// Before the lock, as these may be anybody's code.
		message, errorType = clean(p.Err.Error()), p.errorType()
	}
	points, fallback, err := s.log(&p, message, errorType)
	if points != nil {
		s.metrics.record(points, p.Duration, p.Memory)
	}
	if fallback != nil {
		s.metrics.fallbacks.Add(context.Background(), 1, fallback...)
	}
	return err
}

// log counts a packet and writes its row, both under one lock so that the
// rows are in the order of their timestamps. It returns the data points that
// the packet goes to, none after Close; measuring them needs no lock.
func (s *Session) log(p *Packet, message, errorType string) (*series, []metric.AddOption, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, ErrClosed
	}
	now := s.clock()
	if p.End.IsZero() {
		p.End = now
	}
	r := s.routes.of(p)
	s.totals.add(r.operation, r.selection, r.key.device, p.Duration, p.Err == nil)

	points := r.ok
	if p.Err != nil {
		points = s.routes.failure(r, errorType)
	}
	var fallback []metric.AddOption
	if p.fellBack() {
		fallback = s.routes.fallback(p.DeviceTarget, p.Device)
	}
	return points, fallback, s.writeRow(r, p, message, now)
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

// Flush writes the rows of a burst that wait. The errors are those of Record.
func (s *Session) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return ErrClosed
	case s.rows == nil:
		return s.err
	}
	if err := s.rows.flush(s.clock()); err != nil {
		return fmt.Errorf("flush session %q: %w", s.name, err)
	}
	return nil
}

// writeLate writes the last rows of a burst, after which no packet came that
// would have. What it can't write shows at the next Record and at Close.
func (s *Session) writeLate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = false
	if !s.closed {
		_ = s.rows.flush(s.clock())
	}
}
