// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/tally"
)

// Entry is the checkpoint of one agent.
type Entry struct {
	ID         string // of the agent; further parts may follow a [Separator]
	Mark       Mark
	Ended      int64        // when a successor began, in nanoseconds since the epoch; 0 if none did
	Name       string       // of the agent
	Attributes []Attribute  // under which the totals are exported
	Totals     *tally.State // never nil
}

// Attribute is a string or an integer.
type Attribute struct {
	Key string
	Str string
	Int *int64
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
// value of one storage key: a line with the version, and the length and the values of each entry. A page is always
// written as a whole, so an entry that isn't written again is gone.
type Pages struct {
	pages   [keys]map[string][]byte // values of the entries, by ID
	changed [keys]bool
}

const (
	keys    = 1 << 6
	version = 2
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
	for d := (decoder{raw: rest}); len(d.raw) > 0; {
		e := d.text()
		in := decoder{raw: []byte(e)}
		id := in.text()
		if d.wrong || in.wrong || PageOf(id) != i {
			return nil, fmt.Errorf("%w: truncated or damaged in entry %d", ErrInvalid, len(page)+1)
		}
		page[id] = []byte(e)
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
	e := new(Entry)
	if !decode(p.pages[PageOf(id)][id], reflect.ValueOf(e).Elem()) || e.Totals == nil {
		return nil, fmt.Errorf("%w: truncated or damaged", ErrInvalid)
	}
	return e, nil
}

// Put replaces the entry of an agent.
func (p *Pages) Put(e *Entry) {
	const usual = 1 << 10
	i := PageOf(e.ID)
	p.pages[i][e.ID], p.changed[i] = appendValue(make([]byte, 0, usual), reflect.ValueOf(e).Elem()), true
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

// Failed makes the pages of operations that weren't applied changed again.
func (p *Pages) Failed(ops []Op) {
	for _, op := range ops {
		p.changed[slices.Index(Keys(), op.Key)] = true
	}
}

// value returns the value of a page.
func (p *Pages) value(i int) []byte {
	head := fmt.Sprintf("{\"Version\":%d}\n", version)
	size := len(head)
	for _, e := range p.pages[i] {
		size += binary.MaxVarintLen32 + len(e)
	}
	value := append(make([]byte, 0, size), head...)
	for _, id := range slices.Sorted(maps.Keys(p.pages[i])) {
		e := p.pages[i][id]
		value = append(binary.AppendUvarint(value, uint64(len(e))), e...)
	}
	return value
}
