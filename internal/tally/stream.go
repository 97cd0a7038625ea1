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
	Agent      *Agent
	Name       string        // of the agent
	Attributes attribute.Set // under which the totals are exported
	Ended      []Stream      // streams that ended before the totals began, oldest first
}

// Stream is a period of an agent's totals that has ended: they were exported under one set
// of attributes, which has changed.
type Stream struct {
	Agent      *Agent
	Name       string // of the agent
	Layout     ringbuf.Layout
	Attributes attribute.Set // strings and integers
	Start, End time.Time
}

// Append appends the encoded state to b, for [Shape.RestoreState].
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
		e.string(string(one.Agent.AppendTotals(nil)))
	}
	return s.Agent.AppendTotals(e)
}

// RestoreState restores the state of an agent. It accepts untrusted bytes. The error wraps
// [ErrCheckpoint] or [ErrShape].
func (s *Shape) RestoreState(b []byte) (State, error) {
	d := &decoder{rest: b}
	state := State{Agent: NewAgent(s), Name: d.string(), Attributes: d.attributes()}
	for range d.count(len(d.rest)) { // each takes some bytes
		one := Stream{Agent: NewAgent(s), Name: d.string(), Layout: ringbuf.Layout(d.below(1 << 8)), Attributes: d.attributes()}
		one.Start, one.End = time.Unix(0, int64(d.uint())), time.Unix(0, int64(d.uint()))
		if totals := d.string(); d.err == nil {
			d.err = one.Agent.RestoreTotals([]byte(totals))
		}
		if d.err != nil {
			break
		}
		state.Ended = append(state.Ended, one)
	}
	if d.err == nil {
		d.err = state.Agent.RestoreTotals(d.rest)
	}
	if d.err != nil {
		return State{}, fmt.Errorf("restore totals: %w", d.err)
	}
	return state, nil
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
