// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/diagnose/fleets"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// member writes what a member of a fleet does to a ring.
type member struct {
	fleets.Member

	path   string
	ring   *ringbuf.Writer
	reader *ringbuf.Reader
	due    map[ringbuf.Type]float64 // fractions of events, and of the transfers of each load
	memory uint64
	rng    *rand.Rand
}

// step writes the events of some time, and drains the ring as a Collector does, or as its State says.
func (m *member) step(t *testing.T, at, step time.Duration) {
	t.Helper()
	s := m.Do(at)
	if s.Up == diagnose.No || s.Restarted && at%fleets.Every == 0 {
		m.close(t)
	}
	if s.Up == diagnose.No {
		return
	}
	if m.ring == nil {
		var err error
		m.ring, err = ringbuf.Create(m.path, ringbuf.V4, 1<<13)
		must.OK(t, err)
	}
	push := func(types ...ringbuf.Event) { _, _ = m.ring.PushBatch(types) } // a ring may be full
	each := func(key ringbuf.Type, rate float64, do func()) {
		m.due[key] += rate * step.Seconds()
		for ; m.due[key] >= 1; m.due[key]-- {
			do()
		}
	}
	for i, l := range s.Loads {
		bytes, requests := ringbuf.TypeTxBytes, ringbuf.TypeTxRequests
		if l.Read {
			bytes, requests = ringbuf.TypeRxBytes, ringbuf.TypeRxRequests
		}
		each(ringbuf.TypeEventsDropped+ringbuf.Type(i), l.Rate, func() {
			took := float64(l.Time.Microseconds()) * (0.85 + 0.3*m.rng.Float64())
			push(ringbuf.NewEvent(ringbuf.TypeXferPostTime, uint64(l.Post.Microseconds())), ringbuf.NewEvent(ringbuf.TypeXferTime, uint64(took)),
				ringbuf.NewEvent(bytes, l.Size), ringbuf.NewEvent(requests, 1))
		})
	}
	for kind, rate := range s.Errors {
		e := map[string]ringbuf.Type{"backend": ringbuf.TypeErrBackend, diagnose.NotFound: ringbuf.TypeErrNotFound, diagnose.Canceled: ringbuf.TypeErrCanceled}[kind]
		each(e, rate, func() { push(ringbuf.NewEvent(e, 1)) })
	}
	if s.Memory > m.memory {
		push(ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, s.Memory-m.memory))
		m.memory = s.Memory
	}
	if s.Full > 0 { // nothing drains the ring
		return
	}
	if m.reader == nil {
		var err error
		m.reader, err = ringbuf.OpenReader(m.path, ringbuf.Consume)
		must.OK(t, err)
	}
	_, err := m.reader.Read(0, func(ringbuf.Batch) {})
	must.OK(t, err)
	must.OK(t, m.reader.Commit())
	if s.Foreign > 0 { // by a program that doesn't keep a lock
		must.OK(t, m.reader.Close())
		m.reader = nil
	}
}

func (m *member) close(t *testing.T) {
	t.Helper()
	if m.ring != nil {
		must.OK(t, m.ring.Close())
		m.ring = nil
	}
	if m.reader != nil {
		must.OK(t, m.reader.Close())
		m.reader = nil
	}
}

// Whoever starts a tool after an incident has begun must not read that all is well.
func TestNoIncidentThatBeganBeforeLooksWell(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	for _, f := range fleets.Incidents() {
		if len(f.Want) == 0 || len(f.Members) > 100 || f.Want[0].Kind == diagnose.NearlyFull || f.Want[0].Kind == diagnose.Missing { // no ring is filled or disappears here
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var members []*member
			for i, a := range f.Members {
				must.OK(t, os.MkdirAll(filepath.Join(w.dir, a.Service), 0o700))
				m := &member{Member: a, path: filepath.Join(w.dir, a.Service, a.Name+a.Pod), due: make(map[ringbuf.Type]float64), rng: rand.New(rand.NewPCG(uint64(i), 1))}
				defer m.close(t)
				members = append(members, m)
			}
			w.now = begin.Add(fleets.Begin - time.Minute)
			w.work = func(step time.Duration) {
				for _, m := range members {
					m.step(t, w.now.Sub(begin), step)
				}
			}
			for _, after := range []time.Duration{10 * time.Second, time.Minute, 10 * time.Minute} {
				w.run(begin.Add(fleets.Begin+after-time.Second), 5*time.Second, func() {})
				frames, page := w.watch(t, 10*time.Second, time.Second)
				why := diagnose.Watched(frames, diagnose.Watch(10*time.Second))
				says := diagnose.Headline(why.Findings, why.Checks, why.Still)
				if past := f.Want[0].Kind == diagnose.JobSlower || f.Want[0].Kind == diagnose.Slower; past && after > 10*time.Second ||
					after > time.Minute && f.Name == "all reads of a pool stop, and its writes go on" ||
					after < time.Minute && (f.Name == "a link that becomes slower by the minute" || f.Name == "a pod uses the wrong NIC after an upgrade") || after != time.Minute && f.Name == "a NIC that flaps" {
					continue // the rings don't remember what was before, or nothing is slow at that time
				}
				if says == "Nothing found" {
					t.Errorf("why, started after %v, finds nothing: %+v", after, why.Checks)
				}
				if page.Headline == "Nothing found" {
					t.Errorf("the page, opened after %v, finds nothing: %+v", after, page.Checks)
				}
			}
		})
	}
}

func said(list []diagnose.Finding) (kinds []diagnose.Kind) {
	for _, f := range list {
		kinds = append(kinds, f.Kind)
	}
	return kinds
}
