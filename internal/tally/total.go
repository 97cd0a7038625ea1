// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

// Total is the total of one type of event, also in its stored form.
type Total struct {
	Events uint64
	Sum    Sum // sum of the values
	Newest uint64
}

func (t *Total) record(v uint64) {
	t.Events++
	t.Sum.Add(v)
	t.Newest = v
}

// ones records n events of value 1.
func (t *Total) ones(n uint64) {
	if n > 0 {
		t.Events += n
		t.Sum.Add(n)
		t.Newest = 1
	}
}

// add adds a later total.
func (t *Total) add(later Total) {
	t.Events += later.Events
	t.Sum.plus(later.Sum)
	if later.Events > 0 {
		t.Newest = later.Newest
	}
}

// Last returns the newest value, limited to the largest int64.
func (t *Total) Last() int64 { return saturate(t.Newest) }
