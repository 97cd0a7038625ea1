// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

// Total is the total of one type of event.
type Total struct {
	Events uint64
	Sum    Sum // sum of the values
	last   uint64
}

func (t *Total) record(v uint64) {
	t.Events++
	t.Sum.Add(v)
	t.last = v
}

// ones records n events of value 1.
func (t *Total) ones(n uint64) {
	if n > 0 {
		t.Events += n
		t.Sum.Add(n)
		t.last = 1
	}
}

// Last returns the newest value, limited to the largest int64.
func (t *Total) Last() int64 { return saturate(t.last) }
