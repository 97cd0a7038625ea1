// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func entry(id string) *Entry { return &Entry{ID: id, Totals: new(tally.State)} }

// written returns the values of all keys after the entries of some agents were put into pages.
func written(p *Pages, ids ...string) [][]byte {
	for _, id := range ids {
		p.Put(entry(id))
	}
	values := make([][]byte, keys)
	for _, op := range p.Ops() {
		values[slices.Index(Keys(), op.Key)] = op.Value
	}
	return values
}

func empty() *Pages {
	p, _ := NewPages(nil)
	return p
}

func TestEntryIsRestored(t *testing.T) {
	const id = "/run/nixl/\xff" + Separator + "17" // not UTF-8
	attributes := attribute.NewSet(attribute.String("service.name", "ü"), attribute.Int64("process.pid", 1<<60), attribute.Int("rank", 0))
	want := &Entry{
		ID: id, Ended: 3 << 60, Name: "ü",
		Mark:       Mark{Layout: ringbuf.V3, Dev: 1 << 40, Ino: 2 << 40, Capacity: 4096, From: 5, To: 6, Fingerprint: 7 << 24, Start: 8 << 50},
		Attributes: AttributesOf(attributes),
		Totals:     &tally.State{Shape: 1 << 63, OtherErrors: tally.Sum{Hi: 1, Lo: 1 << 63}},
	}
	p := empty()
	p.Put(want)
	p, errs := NewPages(written(p))
	must.OK(t, errors.Join(errs...))
	got, err := p.Get(id)
	must.OK(t, err)
	if d := cmp.Diff(fmt.Sprintf("%+v %+v", *want.Totals, attributes), fmt.Sprintf("%+v %+v", *got.Totals, got.AttributeSet())); d != "" {
		t.Errorf("totals and attributes (-want +got):\n%s", d)
	}
	want.Totals, got.Totals = nil, nil
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if p.Remove(id); len(p.IDs()) > 0 {
		t.Errorf("%q are still there", p.IDs())
	}
}

// A value that can't be read doesn't affect others, and is replaced only when its page is written.
func TestUnreadableValueIsReported(t *testing.T) {
	const bad, good = "/run/nixl/bad", "/run/nixl/good"
	valid := written(empty(), bad, good)
	page := string(valid[PageOf(bad)])
	for name, tc := range map[string]struct{ value, want string }{
		"cut to half":           {page[:len(page)/2], "entry 1"},
		"last byte missing":     {page[:len(page)-1], "entry 1"},
		"garbage at the end":    {page + "x", "entry 2"},
		"entry of another page": {string(valid[PageOf(good)]), "entry 1"},
		"JSON":                  {strings.Replace(page, "}\n", "}\n{}\n", 1), "entry 1"},
		"binary":                {"\x04\x01\x02", "invalid character"},
		"another version":       {strings.Replace(page, `{"Version":2}`, `{"Version":1}`, 1), "format version 1; this release reads version 2"},
	} {
		t.Run(name, func(t *testing.T) {
			values := slices.Clone(valid)
			values[PageOf(bad)] = []byte(tc.value)
			p, errs := NewPages(values)
			if len(errs) != 1 || !errors.Is(errs[0], ErrInvalid) {
				t.Fatalf("errors are %v, want one", errs)
			}
			for _, part := range []string{tc.want, Keys()[PageOf(bad)]} {
				if !strings.Contains(errs[0].Error(), part) {
					t.Errorf("error %q doesn't contain %q", errs[0], part)
				}
			}
			if d := cmp.Diff([]string{good}, p.IDs()); d != "" {
				t.Errorf("entries (-want +got):\n%s", d)
			}
			if ops := p.Ops(); len(ops) != 0 {
				t.Errorf("%d pages are written", len(ops))
			}
		})
	}
}

func TestEntryThatCantBeUsedIsAnError(t *testing.T) {
	const id = "/run/nixl/agent"
	p := empty()
	number := int64(1) << 40
	p.Put(&Entry{ID: id, Name: "agent", Attributes: []Attribute{{Key: "process.pid", Int: &number}}, Totals: new(tally.State)})
	whole := p.pages[PageOf(id)][id]
	without := appendValue(nil, reflect.ValueOf(Entry{ID: id}))
	large := bytes.Repeat([]byte{0xff}, 4*len(whole))
	for name, raw := range map[string][]byte{"without totals": without, "longer": append(slices.Clip(whole), 0), "large numbers": append(slices.Clip(whole[:20]), large...)} {
		p.pages[PageOf(id)][id] = raw
		if e, err := p.Get(id); e != nil || !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: entry %v, error %v", name, e, err)
		}
	}
	for n := range whole {
		p.pages[PageOf(id)][id] = whole[:n]
		if e, err := p.Get(id); e != nil || !errors.Is(err, ErrInvalid) {
			t.Errorf("cut to %d bytes: entry %v, error %v", n, e, err)
		}
	}
}

func TestOnlyChangedPagesAreWritten(t *testing.T) {
	const a, b, c = "/run/nixl/a-1", "/run/nixl/b-22", "/run/nixl/c-333"
	p, errs := NewPages(written(empty(), a, b, c))
	must.OK(t, errors.Join(errs...))
	if p.Changed() {
		t.Error("pages have changed by loading them")
	}
	p.Put(entry(a))
	p.Remove(b)
	var got []string
	for _, op := range p.Ops() {
		got = append(got, op.Key)
	}
	want := []string{Keys()[PageOf(a)], Keys()[PageOf(b)]}
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" || p.Changed() {
		t.Errorf("changed %v, keys (-want +got):\n%s", p.Changed(), d)
	}
}

// FuzzPages loads any value. What is accepted can be stored again.
func FuzzPages(f *testing.F) {
	for _, value := range written(empty(), "a", "b", "c"+Separator+"1") {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		values := make([][]byte, keys)
		for i := range values {
			values[i] = value
		}
		p, _ := NewPages(values)
		for _, id := range p.IDs() {
			if e, err := p.Get(id); err == nil {
				p.Put(e)
			}
		}
		_, errs := NewPages(written(p))
		must.OK(t, errors.Join(errs...))
	})
}

// A page is written as a whole, so a save would write the totals of agents that haven't changed.
func TestAgentsOfSimilarNamesAreSpreadOverThePages(t *testing.T) {
	for _, format := range []string{"/run/nixl/worker-%d", "k8s:0b1c8d3e-6c52-4e0b-9a58-1f0f0a7c2f%02x/worker/run/nixl/agent-0"} {
		used := make(map[int]bool)
		for i := range keys {
			used[PageOf(fmt.Sprintf(format, i))] = true
		}
		if len(used) < keys/2 {
			t.Errorf("%d agents such as %s share %d pages, want at least %d", keys, format, len(used), keys/2)
		}
	}
}
