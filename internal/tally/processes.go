// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import "math"

// Processes are the stored totals of an agent whose processes count by themselves: the sum
// of those that have exited, and the values of the others.
type Processes struct {
	Bounds []float64 // of all histograms, in microseconds
	// Base is the sum of the processes that have exited. Exited reports whether there
	// are any.
	Base   Values
	Exited bool
	// Counted are the stores of processes in Base that may still exist.
	Counted []string
	Running []ProcessValues
}

// ProcessValues are the values of a process that hasn't exited, as far as is known.
type ProcessValues struct {
	Store           string // name of its store
	PID             int64
	Instance        uint64
	Start           int64 // in nanoseconds since the epoch
	Host, LocalRank string
	Values          Values
	Before          *Values // the part that isn't in the sum; nil if there is none
}

// processesVersion differs from checkpointVersion, so that the totals of an agent with a
// ring aren't accepted. It must change with the format.
const processesVersion = 1 << 8

// AppendTotals appends the encoded totals to b, for [Processes.RestoreTotals].
func (p *Processes) AppendTotals(b []byte) []byte {
	e := encoder(b)
	e.uint(processesVersion)
	e.uint(uint64(len(p.Bounds)))
	for _, bound := range p.Bounds {
		e.uint(math.Float64bits(bound))
	}
	e.bool(p.Exited)
	e.values(&p.Base)
	e.uint(uint64(len(p.Counted)))
	for _, store := range p.Counted {
		e.string(store)
	}
	e.uint(uint64(len(p.Running)))
	for i := range p.Running {
		one := &p.Running[i]
		e.string(one.Store)
		e.uint(uint64(one.PID))
		e.uint(one.Instance)
		e.uint(uint64(one.Start))
		e.string(one.Host)
		e.string(one.LocalRank)
		e.values(&one.Values)
		e.bool(one.Before != nil)
		if one.Before != nil {
			e.values(one.Before)
		}
	}
	return e
}

// maxImportBounds limits the bounds of stored histograms.
const maxImportBounds = 1 << 10

// RestoreTotals is the reverse of AppendTotals. It accepts untrusted bytes. The error
// wraps [ErrCheckpoint]; after an error, p must not be used.
func (p *Processes) RestoreTotals(b []byte) error {
	d := &decoder{rest: b}
	if v := d.uint(); v != processesVersion {
		d.fail("version %d of the totals of processes", v)
	}
	p.Bounds = make([]float64, d.count(maxImportBounds))
	for i := range p.Bounds {
		p.Bounds[i] = math.Float64frombits(d.uint())
	}
	if _, err := ImportShape(p.Bounds, true); err != nil {
		d.fail("%v", err)
	}
	p.Exited = d.bool()
	p.Base = d.values(len(p.Bounds) + 1)
	for range d.count(len(d.rest)) { // each takes some bytes
		p.Counted = append(p.Counted, d.string())
	}
	for range d.count(len(d.rest)) {
		one := ProcessValues{
			Store: d.string(), PID: int64(d.uint()), Instance: d.uint(), Start: int64(d.uint()), Host: d.string(), LocalRank: d.string(),
			Values: d.values(len(p.Bounds) + 1),
		}
		if d.bool() {
			before := d.values(len(p.Bounds) + 1)
			one.Before = &before
		}
		p.Running = append(p.Running, one)
		if d.err != nil {
			break
		}
	}
	return d.end()
}

func (e *encoder) values(v *Values) {
	e.uint(uint64(len(v.Sums)))
	for t := range v.Sums {
		e.sum(v.Sums[t])
		e.uint(v.Last[t])
	}
	e.uint(uint64(len(v.Others)))
	for _, o := range v.Others {
		e.sum(o.Sum)
		e.uint(o.Last)
	}
	for _, d := range []*Distribution{&v.Duration, &v.Post} {
		e.sum(d.Sum)
		e.uints(d.Counts)
	}
}

// values decodes values with a number of buckets, or without any.
func (d *decoder) values(buckets int) (v Values) {
	if n := d.uint(); n != uint64(len(v.Sums)) {
		d.fail("%d event types", n)
	}
	for t := range v.Sums {
		v.Sums[t], v.Last[t] = d.sum(), d.uint()
	}
	for range d.count(len(d.rest)) {
		v.Others = append(v.Others, Other{Sum: d.sum(), Last: d.uint()})
	}
	for _, h := range []*Distribution{&v.Duration, &v.Post} {
		h.Sum, h.Counts = d.sum(), d.uints(buckets)
		if n := len(h.Counts); n != 0 && n != buckets {
			d.fail("%d buckets, not %d", n, buckets)
		}
	}
	return v
}
