// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"

	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Pattern is a doublestar pattern that matches the names of stores in any directory.
const Pattern = "**/nixl.*.*.*.mmap"

// The layout of a store is storeLayout in NIXL's mp_store_layout.h. Numbers are
// little endian, and there is no padding.
const (
	magic         = 0x3153504d4c58494e // "NIXLMPS1"; MP_STORE_MAGIC
	schemaVersion = 1                  // MP_STORE_SCHEMA_VERSION
	slots         = ringbuf.Types      // MP_STORE_SLOT_COUNT: one per event type
	maxBounds     = 32                 // MP_STORE_MAX_BUCKETS

	atMagic        = 0
	atVersion      = 8
	atSlots        = 12
	atPID          = 16
	atUpdated      = 24
	atInstance     = 32
	atBoundCount   = 40
	atAgent        = 48  // char[256]
	atHost         = 304 // char[128]
	atRank         = 432 // char[64]
	atBounds       = 496 // double[32]
	atCounters     = 752 // uint64[21], by type; so are the following
	atGauges       = atCounters + 8*slots
	atBuckets      = atGauges + 8*slots                           // uint64[21][33]; the last has no bound
	size           = atBuckets + 8*slots*bucketsPerType + 8*slots // 6,800; the sums of the histograms are last
	bucketsPerType = maxBounds + 1

	// After the header was read, only the bytes from valuesFrom to valuesTo are needed.
	// They exclude the sums of the histograms, which equal the counters of transfer
	// times and post times.
	valuesFrom = atCounters
	valuesTo   = atBuckets + 8*bucketsPerType*(int(ringbuf.TypeXferPostTime)+1)
)

// Reasons why a file can't be read as a store.
var (
	ErrInvalid = errors.New("invalid store")
	ErrVersion = errors.New("unknown store version")
	errShrunk  = fmt.Errorf("%w: file was truncated", ErrInvalid)
)

// fileName is the parsed name of a store: nixl.PID.MARKER.INSTANCE.mmap.
type fileName struct {
	pid      int64
	marker   int64 // start of the process, in nanoseconds since the epoch
	instance uint64
}

var fileNames = regexp.MustCompile(`^nixl\.(\d{1,19})\.(\d{1,19})\.(\d{1,20})\.mmap$`)

func parseName(name string) (f fileName, ok bool) {
	m := fileNames.FindStringSubmatch(name)
	if m == nil {
		return f, false
	}
	var errs [3]error
	f.pid, errs[0] = strconv.ParseInt(m[1], 10, 64)
	f.marker, errs[1] = strconv.ParseInt(m[2], 10, 64)
	f.instance, errs[2] = strconv.ParseUint(m[3], 10, 64)
	return f, errors.Join(errs[:]...) == nil
}

// header is the part of a store that its process writes once, except for updated.
type header struct {
	fileName

	agent, host, rank string
	bounds            []float64 // in microseconds
	updated           uint64    // last update; CLOCK_MONOTONIC in nanoseconds
}

// parseHeader checks and copies the header of a store. b must have size bytes.
func parseHeader(b []byte, name fileName) (h header, err error) {
	le := binary.LittleEndian
	switch {
	case le.Uint64(b[atMagic:]) != magic:
		return h, fmt.Errorf("%w: file doesn't begin with NIXLMPS1", ErrInvalid)
	case le.Uint32(b[atVersion:]) != schemaVersion, le.Uint32(b[atSlots:]) != uint32(slots):
		return h, fmt.Errorf("%w %d with %d event types: this release reads version %d with %d; update the reader",
			ErrVersion, le.Uint32(b[atVersion:]), le.Uint32(b[atSlots:]), schemaVersion, slots)
	}
	h.fileName = fileName{pid: int64(le.Uint64(b[atPID:])), marker: name.marker, instance: le.Uint64(b[atInstance:])}
	if h.fileName != name {
		return h, fmt.Errorf("%w: header is for process %d, instance %d, unlike the file name", ErrInvalid, h.pid, h.instance)
	}
	h.updated = le.Uint64(b[atUpdated:])
	var errs [3]error
	h.agent, errs[0] = parseText(b[atAgent:atHost], "agent name")
	h.host, errs[1] = parseText(b[atHost:atRank], "host name")
	h.rank, errs[2] = parseText(b[atRank:atBounds], "local rank")
	if err := errors.Join(errs[:]...); err != nil {
		return h, err
	}
	if h.agent == "" {
		return h, fmt.Errorf("%w: agent name is empty", ErrInvalid)
	}
	n := le.Uint64(b[atBoundCount:])
	if n > maxBounds {
		return h, fmt.Errorf("%w: %d bucket bounds exceed the maximum of %d", ErrInvalid, n, maxBounds)
	}
	h.bounds = make([]float64, n)
	for i := range h.bounds {
		h.bounds[i] = math.Float64frombits(le.Uint64(b[atBounds+8*i:]))
	}
	return h, nil
}

func parseText(b []byte, what string) (string, error) {
	text, _, ok := bytes.Cut(b, []byte{0})
	if !ok {
		return "", fmt.Errorf("%w: %s isn't terminated", ErrInvalid, what)
	}
	return string(text), nil
}

// newShape returns the shape of the totals of a store. It returns an error if the bounds
// aren't finite, positive and increasing.
func newShape(bounds []float64, histograms bool) (*tally.Shape, error) {
	duration := tally.HistogramConfig{Kind: tally.NoHistogram}
	if histograms && len(bounds) > 0 {
		duration.Kind = tally.Explicit
	}
	for _, bound := range bounds {
		duration.Bounds = append(duration.Bounds, bound/1e6)
	}
	none := tally.HistogramConfig{Kind: tally.NoHistogram}
	shape, err := tally.NewShape(tally.Config{Duration: duration, Size: none, Throughput: none})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return shape, nil
}

// maxCount limits the count of a bucket, so that sums of counts can't overflow. A
// process never counts as many events.
const maxCount = 1 << 48

// update updates the values of a process from its store, which has a number of bounds,
// and reports whether any of them has changed. The process may update the store during
// the read, so the values may be from different times, and counters keep the larger
// value. No single value is torn, because the kernel copies aligned words.
func update(v *tally.Values, b []byte, bounds int) (changed bool) {
	word := func(from, i int) uint64 { return binary.LittleEndian.Uint64(b[from+8*i:]) }
	raise := func(s *tally.Sum, t ringbuf.Type) {
		changed = s.Raise(tally.Sum{Lo: word(atCounters, int(t))}) || changed
	}
	distribution := func(d *tally.Distribution, t ringbuf.Type) {
		raise(&d.Sum, t)
		if d.Counts == nil {
			d.Counts = make([]uint64, bounds+1)
		}
		for i := range d.Counts {
			if n := min(word(atBuckets+8*bucketsPerType*int(t), i), maxCount); n > d.Counts[i] {
				d.Counts[i], changed = n, true
			}
		}
	}
	for i := range v.Sums {
		if last := word(atGauges, i); last != v.Last[i] {
			v.Last[i], changed = last, true
		}
		switch t := ringbuf.Type(i); t {
		case ringbuf.TypeXferTime:
			distribution(&v.Duration, t)
		case ringbuf.TypeXferPostTime:
			distribution(&v.Post, t)
		default:
			raise(&v.Sums[i], t)
		}
	}
	return changed
}
