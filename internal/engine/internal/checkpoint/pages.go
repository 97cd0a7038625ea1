// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/tally"
)

// Entry is the checkpoint of one agent, in JSON.
type Entry struct {
	ID         string `json:"-"`  // of the agent; further parts may follow a [Separator]
	Bytes      []byte `json:"ID"` // of the ID, which JSON would change if it isn't valid UTF-8
	Mark       Mark
	Ended      int64        `json:",omitempty"` // when a successor began, in nanoseconds since the epoch
	Name       string       // of the agent
	Attributes []Attribute  `json:",omitempty"` // under which the totals are exported
	Totals     *tally.State // never nil
}

// Attribute is a string or an integer.
type Attribute struct {
	Key string
	Str string `json:",omitempty"`
	Int *int64 `json:",omitempty"`
}

// AttributesOf returns the stored form of a set of strings and integers.
func AttributesOf(set attribute.Set) (list []Attribute) {
	for _, kv := range set.ToSlice() {
		one := Attribute{Key: string(kv.Key)}
		if kv.Value.Type() == attribute.INT64 {
			n := kv.Value.AsInt64()
			one.Int = &n
		} else {
			one.Str = kv.Value.AsString()
		}
		list = append(list, one)
	}
	return list
}

// AttributeSet is the reverse of AttributesOf.
func (e *Entry) AttributeSet() attribute.Set {
	var list []attribute.KeyValue
	for _, one := range e.Attributes {
		key := attribute.Key(one.Key)
		if one.Int != nil {
			list = append(list, key.Int64(*one.Int))
		} else {
			list = append(list, key.String(one.Str))
		}
	}
	return attribute.NewSet(list...)
}

// Pages are the entries of all agents. An agent's ID determines its page, and each page is the
// value of one storage key: a line with the version, and a line for each entry. A page is always
// written as a whole, so an entry that isn't written again is gone.
type Pages struct {
	pages   [keys]map[string][]byte // lines, by ID
	changed [keys]bool
}

const (
	keys    = 1 << 6
	version = 1
)

// Separator separates parts of an entry's ID. The first part determines the page, so entries of
// one agent are stored together.
const Separator = "\x00"

// ErrInvalid reports a value or an entry that can't be read.
var ErrInvalid = errors.New("invalid checkpoint")

// Keys returns the storage keys of all pages. The list is shared: it must not be changed.
func Keys() []string { return names }

var names = func() []string {
	list := make([]string, keys)
	for i := range list {
		list[i] = fmt.Sprintf("agents-%02d", i)
	}
	return list
}()

// PageOf returns the number of an agent's page, which is the index of its key.
func PageOf(id string) int {
	id, _, _ = strings.Cut(id, Separator)
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return int(h.Sum32() % keys) // the upper bits of similar names are similar
}

// NewPages returns the pages with the values of all keys, or without any. The page of a value that
// can't be read is empty; its error wraps [ErrInvalid].
func NewPages(values [][]byte) (p *Pages, errs []error) {
	p = new(Pages)
	for i, key := range Keys() {
		p.pages[i] = make(map[string][]byte)
		if i >= len(values) || len(values[i]) == 0 {
			continue
		}
		page, err := parse(values[i], i)
		if err != nil {
			errs = append(errs, fmt.Errorf("storage key %s: %w", key, err))
			continue
		}
		p.pages[i] = page
	}
	return p, errs
}

// parse returns the entries of page i.
func parse(value []byte, i int) (map[string][]byte, error) {
	var head struct{ Version int }
	first, rest, _ := bytes.Cut(value, []byte("\n"))
	if err := json.Unmarshal(first, &head); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if head.Version != version {
		return nil, fmt.Errorf("%w: another release stored it (format version %d; this release reads version %d)", ErrInvalid, head.Version, version)
	}
	page := make(map[string][]byte)
	for text := range bytes.Lines(rest) {
		var e struct{ ID []byte }
		if json.Unmarshal(text, &e) != nil || PageOf(string(e.ID)) != i || !bytes.HasSuffix(text, []byte("\n")) {
			return nil, fmt.Errorf("%w: truncated or damaged in line %d", ErrInvalid, len(page)+2)
		}
		page[string(e.ID)] = text
	}
	return page, nil
}

// IDs returns the IDs of all entries, in order.
func (p *Pages) IDs() (ids []string) {
	for _, page := range p.pages {
		ids = slices.AppendSeq(ids, maps.Keys(page))
	}
	slices.Sort(ids)
	return ids
}

// Get returns the entry of an ID, which must be one of [Pages.IDs].
func (p *Pages) Get(id string) (*Entry, error) {
	e := &Entry{Totals: new(tally.State)}
	if err := json.Unmarshal(p.pages[PageOf(id)][id], e); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if e.Totals == nil {
		return nil, fmt.Errorf("%w: it has no totals", ErrInvalid)
	}
	e.ID = id
	return e, nil
}

// Put replaces the entry of an agent.
func (p *Pages) Put(e *Entry) {
	e.Bytes = []byte(e.ID)
	i := PageOf(e.ID)
	text, _ := json.Marshal(e) // it has no values that JSON lacks
	p.pages[i][e.ID], p.changed[i] = append(text, '\n'), true
}

// Remove removes the entry of an agent.
func (p *Pages) Remove(id string) {
	i := PageOf(id)
	delete(p.pages[i], id)
	p.changed[i] = true
}

// Changed reports whether a page has changed since the last call of Ops.
func (p *Pages) Changed() bool { return p.changed != [keys]bool{} }

// Ops returns the operations that write the pages that have changed.
func (p *Pages) Ops() (ops []Op) {
	for i, key := range Keys() {
		if p.changed[i] {
			ops = append(ops, Op{Key: key, Value: p.value(i)})
		}
	}
	p.changed = [keys]bool{}
	return ops
}

// value returns the text of a page.
func (p *Pages) value(i int) []byte {
	head := fmt.Sprintf("{\"Version\":%d}\n", version)
	size := len(head)
	for _, line := range p.pages[i] {
		size += len(line)
	}
	text := append(make([]byte, 0, size), head...)
	for _, id := range slices.Sorted(maps.Keys(p.pages[i])) {
		text = append(text, p.pages[i][id]...)
	}
	return text
}
