// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"iter"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// classes holds the times of transfers by size class. A time is recorded when its
// group ends, because only then the size is known.
type classes struct {
	duration, post [unknownSize + 1]Histogram
}

// unknownSize is the index for groups that weren't whole. The other indexes are those
// of [semconv.SizeClass].
const unknownSize = 4

func newClasses(s *scale) *classes {
	c := new(classes)
	for i := range c.duration {
		c.duration[i].init(s)
		c.post[i].init(s)
	}
	return c
}

// copyOf returns a deep copy of from, in c unless it is nil.
func (c *classes) copyOf(from *classes) *classes {
	if from == nil {
		return nil
	}
	if c == nil {
		c = new(classes)
	}
	for i := range from.duration {
		c.duration[i].copyFrom(&from.duration[i])
		c.post[i].copyFrom(&from.post[i])
	}
	return c
}

// record records the times of a whole group.
func (c *classes) record(bytes, took, post uint64) {
	i := semconv.SizeClass(bytes)
	c.duration[i].record(took)
	c.post[i].record(post)
}

func (c *classes) recordRun(groups []group) {
	for i := range groups {
		g := &groups[i]
		c.record(g[2].Value, g[1].Value, g[0].Value)
	}
}

// incomplete records the times of a group that has ended without all its events.
func (c *classes) incomplete(g *groups) {
	if g.seen&atTime != 0 {
		c.duration[unknownSize].record(g.took)
	}
	if g.seen&atPostTime != 0 {
		c.post[unknownSize].record(g.post)
	}
}

// Durations returns the distributions of transfer times by size class, one of
// [semconv.SizeClasses]. The class of transfers with missing events is "". Together,
// the distributions equal [Totals.Duration], except for a transfer whose events are
// still being read. Without [Config.SizeClasses], Durations returns only
// [Totals.Duration], with the class "".
func (t *Totals) Durations() iter.Seq2[string, *Histogram] {
	if t.classes == nil {
		return unclassified(&t.duration)
	}
	return byClass(&t.classes.duration)
}

// PostDurations is like [Totals.Durations], but for post times.
func (t *Totals) PostDurations() iter.Seq2[string, *Histogram] {
	if t.classes == nil {
		return unclassified(&t.post)
	}
	return byClass(&t.classes.post)
}

func unclassified(h *Histogram) iter.Seq2[string, *Histogram] {
	return func(yield func(string, *Histogram) bool) { yield("", h) }
}

func byClass(list *[unknownSize + 1]Histogram) iter.Seq2[string, *Histogram] {
	names := append(semconv.SizeClasses(), "")
	return func(yield func(string, *Histogram) bool) {
		for i := range list {
			if !yield(names[i], &list[i]) {
				return
			}
		}
	}
}
