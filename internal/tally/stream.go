// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// State is what a checkpoint contains of an agent, except for the position in its ring.
type State struct {
	Stored
	Name       string        // of the agent
	Attributes attribute.Set // under which the totals are exported
	Ended      []Stream      // streams that ended before the totals began, oldest first
}

// Stored are the totals of an agent with a ring or with stores. Exactly one field is set.
type Stored struct {
	Agent     *Agent
	Processes *Processes
}

// Stream is a period of an agent's totals that has ended: they were exported under one set
// of attributes, which has changed.
type Stream struct {
	Stored
	Name       string // of the agent
	Layout     ringbuf.Layout
	Attributes attribute.Set // strings and integers
	Start, End time.Time
}

// Append appends the encoded state to b, for [Shape.RestoreState] or [RestoreProcesses].
func (s *State) Append(b []byte) []byte {
	e := encoder(b)
	e.string(s.Name)
	e.attributes(s.Attributes)
	e.uint(uint64(len(s.Ended)))
	for i := range s.Ended {
		one := &s.Ended[i]
		e.string(one.Name)
		e.uint(uint64(one.Layout))
		e.attributes(one.Attributes)
		e.uint(uint64(one.Start.UnixNano()))
		e.uint(uint64(one.End.UnixNano()))
		e.string(string(one.append(nil)))
	}
	return s.append(e)
}

func (s *Stored) append(b []byte) []byte {
	if s.Processes != nil {
		return s.Processes.AppendTotals(b)
	}
	return s.Agent.AppendTotals(b)
}

// RestoreState restores the state of an agent with a ring. It accepts untrusted bytes. The
// error wraps [ErrCheckpoint] or [ErrShape].
func (s *Shape) RestoreState(b []byte) (State, error) {
	return restoreState(b, func(b []byte) (Stored, error) {
		a := NewAgent(s)
		return Stored{Agent: a}, a.RestoreTotals(b)
	})
}

// RestoreProcesses is RestoreState for an agent with stores.
func RestoreProcesses(b []byte) (State, error) {
	return restoreState(b, func(b []byte) (Stored, error) {
		p := new(Processes)
		return Stored{Processes: p}, p.RestoreTotals(b)
	})
}

func restoreState(b []byte, restore func([]byte) (Stored, error)) (State, error) {
	d := &decoder{rest: b}
	s := State{Name: d.string(), Attributes: d.attributes()}
	for range d.count(len(d.rest)) { // each takes some bytes
		one := Stream{Name: d.string(), Layout: ringbuf.Layout(d.below(1 << 8)), Attributes: d.attributes()}
		one.Start, one.End = time.Unix(0, int64(d.uint())), time.Unix(0, int64(d.uint()))
		if totals := d.string(); d.err == nil {
			one.Stored, d.err = restore([]byte(totals))
		}
		if d.err != nil {
			break
		}
		s.Ended = append(s.Ended, one)
	}
	if d.err == nil {
		s.Stored, d.err = restore(d.rest)
	}
	if d.err != nil {
		return State{}, fmt.Errorf("restore totals: %w", d.err)
	}
	return s, nil
}

func (e *encoder) attributes(set attribute.Set) {
	e.uint(uint64(set.Len()))
	for _, kv := range set.ToSlice() {
		e.string(string(kv.Key))
		integer := kv.Value.Type() == attribute.INT64
		e.bool(integer)
		if integer {
			e.int(kv.Value.AsInt64())
		} else {
			e.string(kv.Value.AsString())
		}
	}
}

func (d *decoder) attributes() attribute.Set {
	var list []attribute.KeyValue
	for range d.count(len(d.rest)) {
		key := attribute.Key(d.string())
		if integer := d.bool(); integer {
			list = append(list, key.Int64(d.int()))
		} else {
			list = append(list, key.String(d.string()))
		}
		if d.err != nil {
			return attribute.Set{}
		}
	}
	return attribute.NewSet(list...)
}
