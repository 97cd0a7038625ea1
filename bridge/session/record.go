// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"os"

	"github.com/nixl-otel/nixl-otel/bridge/internal/errtype"
)

// Record records a completed packet. The packet's row is in the file when Record
// returns. If ctx has a sampled span, the packet's measurements get exemplars
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
		message, errorType = clean(errtype.Text(p.Err)), p.errorType()
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
		return points{}, fmt.Errorf("record packet %d of session %q: %w", p.ID, s.name, os.ErrClosed)
	}
	if p.End.IsZero() {
		p.End = s.clock()
	}
	r := s.routes.of(p)
	s.totals.add(r.inSummary, r.selection, r.device, p.Duration, p.Err == nil)

	to := points{series: r.ok, expert: s.routes.expert(r, p.Expert)}
	if p.Err != nil {
		to.series = s.routes.failure(r, errorType)
	}
	if p.fellBack() {
		to.fallback = s.routes.fallback(r, p.DeviceTarget)
	}
	return to, s.writeRow(r, p, message)
}

func (s *Session) writeRow(r *route, p *Packet, message string) error {
	l := s.rows
	if l == nil {
		return s.err
	}
	if err := l.add(appendRow(l.row, p.End, r.head, r.tail, p, message)); err != nil {
		return fmt.Errorf("record packet %d of session %q: %w", p.ID, s.name, err)
	}
	return nil
}
