// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"maps"
	"slices"
	"strings"
)

// index lists the keys in the storage extension, which can't list them.
type index struct {
	keys   map[string]bool // complete; some keys may no longer exist
	read   bool            // whether keys includes those of earlier processes
	stored bool            // whether the stored list equals keys
}

// load adds the keys that an earlier process stored.
func (x *index) load(value []byte) {
	listed := 0
	for p := range strings.SplitSeq(string(value), indexSeparator) {
		if p != "" {
			x.keys[Key(p)] = true
			listed++
		}
	}
	x.read, x.stored = true, listed == len(x.keys)
}

// with returns ops, with another op that stores the index if ops change it. It doesn't
// overwrite an index that wasn't read.
func (x *index) with(ops []Op) []Op {
	changes := slices.ContainsFunc(ops, func(op Op) bool { return x.keys[op.Key] != (op.Value != nil) })
	if !x.read || x.stored && !changes {
		return ops
	}
	after := maps.Clone(x.keys)
	for _, op := range ops {
		if op.Value != nil {
			after[op.Key] = true
		} else {
			delete(after, op.Key)
		}
	}
	var paths []string
	for key := range after {
		paths = append(paths, path(key))
	}
	slices.Sort(paths)
	return append(slices.Clip(ops), Op{Key: indexKey, Value: []byte(strings.Join(paths, indexSeparator))})
}

// applied records the result of a batch. A failed batch may have been applied, so its keys
// stay in the index.
func (x *index) applied(ops []Op, ok bool) {
	for _, op := range ops {
		switch {
		case op.Key == indexKey:
			x.stored = true
		case op.Value != nil:
			x.keys[op.Key] = true
		case ok:
			delete(x.keys, op.Key)
		}
	}
	x.stored = x.stored && ok
}

// except returns the keys that aren't in known, in order.
func (x *index) except(known map[string]bool) []string {
	var list []string
	for key := range x.keys {
		if !known[key] {
			list = append(list, key)
		}
	}
	slices.Sort(list)
	return list
}
