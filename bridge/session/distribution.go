// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import "time"

// Bucket counts packets by duration. The duration is at most UpperBound and greater
// than the previous bucket's UpperBound.
type Bucket struct {
	UpperBound time.Duration
	Packets    int64
}

// durations counts packets by duration. Its bounds are 1, 2 and 5 µs, times powers
// of ten.
type durations struct {
	counts []int64
}

func (d *durations) add(took time.Duration) {
	i := 0
	for durationBound(i) < took {
		i++
	}
	for len(d.counts) <= i {
		d.counts = append(d.counts, 0)
	}
	d.counts[i]++
}

// durationBound returns the upper bound of bucket i. It can't overflow, because the
// duration of a [Row] is at most 1e12 ms.
func durationBound(i int) time.Duration {
	bound := time.Microsecond * time.Duration([...]int{1, 2, 5}[i%3])
	for range i / 3 {
		bound *= 10
	}
	return bound
}

func (d *durations) list() []Bucket {
	var list []Bucket
	for i, n := range d.counts {
		if n > 0 || len(list) > 0 {
			list = append(list, Bucket{durationBound(i), n})
		}
	}
	return list
}

// Interval is a part of the session's time. It counts the packets that ended in it.
type Interval struct {
	Start   time.Duration // since the start of the first packet
	Packets int64
	Time    time.Duration // total duration of the packets
}

const (
	timelineLength = 20
	timelineFinest = 10 * time.Microsecond
)

// timeline divides a session, whose length isn't known in advance, into intervals.
// If a packet ends after the last interval, pairs of intervals are merged.
type timeline struct {
	start     time.Time
	width     time.Duration // length of an interval; 0 before the first packet
	intervals [timelineLength]Interval
	used      int
}

func (t *timeline) add(row Row) {
	if t.width == 0 {
		t.start, t.width = row.Time.Add(-row.Duration), timelineFinest
	}
	at := max(row.Time.Sub(t.start), 0)
	for at/t.width >= timelineLength {
		t.widen()
	}
	i := int(at / t.width)
	t.intervals[i].Packets++
	t.intervals[i].Time += row.Duration
	t.used = max(t.used, i+1)
}

func (t *timeline) widen() {
	old := t.intervals
	t.intervals = [timelineLength]Interval{}
	for i, interval := range old {
		t.intervals[i/2].Packets += interval.Packets
		t.intervals[i/2].Time += interval.Time
	}
	t.width *= 2
	t.used = (t.used + 1) / 2
}

func (t *timeline) list() []Interval {
	list := make([]Interval, t.used)
	for i := range list {
		list[i] = t.intervals[i]
		list[i].Start = time.Duration(i) * t.width
	}
	return list
}
