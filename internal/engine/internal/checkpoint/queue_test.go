// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// memory is a store in memory. Its calls fail with err unless it is nil.
type memory struct {
	values map[string]string
	err    error
}

func newMemory(keys ...string) *memory {
	m := &memory{values: make(map[string]string)}
	var paths []string
	for _, key := range keys {
		m.values[key] = "old"
		paths = append(paths, path(key))
	}
	if len(keys) > 0 {
		m.values[indexKey] = strings.Join(paths, indexSeparator)
	}
	return m
}

func (m *memory) Get(_ context.Context, key string) ([]byte, error) {
	if v, ok := m.values[key]; ok && m.err == nil {
		return []byte(v), nil
	}
	return nil, m.err
}

func (m *memory) Apply(_ context.Context, ops []Op) error {
	if m.err != nil {
		return m.err
	}
	for _, op := range ops {
		if op.Value == nil {
			delete(m.values, op.Key)
		} else {
			m.values[op.Key] = string(op.Value)
		}
	}
	return nil
}

// indexed returns the keys in the store's index.
func (m *memory) indexed() map[string]bool {
	keys := make(map[string]bool)
	for p := range strings.SplitSeq(m.values[indexKey], indexSeparator) {
		if p != "" {
			keys[Key(p)] = true
		}
	}
	return keys
}

func keysOf(n int) (keys []string) {
	for i := range n {
		keys = append(keys, Key(fmt.Sprintf("/run/nixl/%03d", i)))
	}
	return keys
}

func set(key, value string) Op { return Op{Key: key, Value: []byte(value)} }

var (
	start   = time.Unix(1_000_000, 0)
	errDisk = errors.New("disk full")
)

const staleAfter = 5 * time.Minute

// run makes calls until there are none left, and returns their number.
func run(t *testing.T, q *Queue, m *memory, now time.Time) (calls int) {
	t.Helper()
	for ; ; calls++ {
		c := q.Next(now)
		if c == nil {
			return calls
		}
		if calls > 10_000 {
			t.Fatal("the calls don't end")
		}
		value, err := c.Do(t.Context(), m)
		q.Done(c, value, err, now)()
	}
}

// A random sequence of requests, with a store that fails sometimes, before or after it has
// applied a batch.
func TestQueueFulfillsAllRequests(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		keys := keysOf(12)
		m := newMemory(keys[:6]...)
		q := NewQueue(staleAfter, start)
		now := start
		want := map[string]string{} // the last saved value, or "" if the key was forgotten
		answered, asked, saving := 0, 0, false
		for range 60 {
			key := keys[random.IntN(len(keys))]
			switch random.IntN(6) {
			case 0:
				if saving {
					continue
				}
				value := fmt.Sprint(random.Uint32())
				want[key] = value
				q.Save([]Op{set(key, value), set(keys[0], value)}, func(error) { answered++; saving = false })
				want[keys[0]] = value
				asked, saving = asked+1, true
			case 1:
				want[key] = ""
				q.Forget(key)
			case 2:
				if _, saved := want[key]; !saved {
					q.Load(key, func([]byte, error) { answered++ })
					asked++
				}
			case 3:
				now = now.Add(time.Duration(random.Int64N(int64(time.Minute))))
			default:
				if c := q.Next(now); c != nil {
					doubt := random.IntN(8)
					if doubt == 0 {
						m.err = errDisk
					}
					value, err := c.Do(t.Context(), m)
					if doubt == 1 { // it was applied, but reports an error
						err = errDisk
					}
					m.err = nil
					q.Done(c, value, err, now)()
				}
			}
		}
		run(t, q, m, now)
		// Retry all saves, because some have failed.
		for key, value := range want {
			if value != "" {
				q.Save([]Op{set(key, value)}, func(err error) {
					if err != nil {
						t.Errorf("seed %d: %v", seed, err)
					}
				})
			}
		}
		run(t, q, m, now.Add(retryAfter))
		run(t, q, m, start.Add(time.Hour))
		if answered != asked {
			t.Fatalf("seed %d: %d of %d were answered", seed, answered, asked)
		}
		for _, key := range keys {
			if value, known := want[key]; known && m.values[key] != value {
				t.Fatalf("seed %d: %s is %q, want %q", seed, key, m.values[key], value)
			}
		}
		for key := range m.values {
			if key != indexKey && !m.indexed()[key] {
				t.Fatalf("seed %d: %s isn't in the index", seed, key)
			}
		}
	}
}

func TestOnlyUnusedKeysAreSwept(t *testing.T) {
	keys := keysOf(100)
	m, q := newMemory(keys...), NewQueue(staleAfter, start)
	q.Load(keys[3], func([]byte, error) {})
	q.Save([]Op{set(keys[4], "new"), set("agent:new", "new")}, nil)
	run(t, q, m, start)
	q.Forget(keys[5]) // it is removed before the sweep
	run(t, q, m, start.Add(staleAfter-1))
	if len(m.values) != 101 {
		t.Errorf("%d values are left before the time, want 101", len(m.values))
	}
	calls := run(t, q, m, start.Add(staleAfter))
	want := map[string]bool{keys[3]: true, keys[4]: true, "agent:new": true}
	got := maps.Clone(m.values)
	delete(got, indexKey)
	if len(got) != 3 || !maps.Equal(m.indexed(), want) {
		t.Errorf("keys %v are left, index %v", slices.Sorted(maps.Keys(got)), m.indexed())
	}
	if least := 97 / sweepBatch; calls < least {
		t.Errorf("swept in %d batches, want at least %d", calls, least)
	}
	if n := run(t, q, m, start.Add(time.Hour)); n != 0 || !q.Wake().IsZero() {
		t.Errorf("%d more calls, and another at %v", n, q.Wake())
	}
}

func TestLoadsAndSavesComeBeforeTheSweep(t *testing.T) {
	m, q := newMemory(keysOf(500)...), NewQueue(staleAfter, start)
	now := start.Add(staleAfter)
	for i := range 60 {
		c := q.Next(now)
		if i%3 == 1 {
			q.Save([]Op{set("agent:saved", "new")}, nil)
			q.Load(Key(fmt.Sprint("late", i)), func([]byte, error) {})
		}
		value, err := c.Do(t.Context(), m)
		q.Done(c, value, err, now)()
		if i%3 != 1 {
			continue
		}
		if c = q.Next(now); c == nil || c.Key != Key(fmt.Sprint("late", i)) {
			t.Fatalf("the next call is %+v, want the load", c)
		}
		q.Done(c, nil, nil, now)()
		if c = q.Next(now); c == nil || c.Ops[0].Key != "agent:saved" {
			t.Fatalf("the next call is %+v, want the save", c)
		}
		q.Done(c, nil, nil, now)()
	}
}

func TestIndexIsStoredInTheBatchOfANewKey(t *testing.T) {
	m, q := newMemory(keysOf(2)...), NewQueue(staleAfter, start)
	q.Save([]Op{set("agent:a", "1")}, nil)
	q.Save([]Op{set("agent:a", "2")}, nil)
	for range 2 {
		c := q.Next(start)
		value, err := c.Do(t.Context(), m)
		q.Done(c, value, err, start)()
	}
	if !m.indexed()["agent:a"] || len(m.indexed()) != 3 || m.values["agent:a"] != "1" {
		t.Errorf("index is %v", m.indexed())
	}
	if c := q.Next(start); len(c.Ops) != 1 {
		t.Errorf("the next batch is %v, want the checkpoint only", c.Ops)
	}
}

// A failed batch may have been applied.
func TestIndexListsTheKeysOfAFailedBatch(t *testing.T) {
	m, q := newMemory(keysOf(2)...), NewQueue(staleAfter, start)
	q.Save([]Op{set("agent:a", "1")}, nil)
	q.Save([]Op{set("agent:b", "1")}, nil)
	for _, result := range []error{nil, errDisk, nil} {
		c := q.Next(start)
		value, err := c.Do(t.Context(), m)
		q.Done(c, value, errors.Join(err, result), start)()
	}
	if !m.indexed()["agent:a"] || !m.indexed()["agent:b"] || len(m.indexed()) != 4 {
		t.Errorf("index is %v", m.indexed())
	}
}

// Saves don't wait for the index. Once it can be read, it lists all keys.
func TestUnreadableIndexIsNotOverwritten(t *testing.T) {
	m, q := newMemory(keysOf(2)...), NewQueue(staleAfter, start)
	var result error
	q.Save([]Op{set("agent:a", "1")}, func(err error) { result = err })
	c := q.Next(start)
	if c.Key != indexKey {
		t.Fatalf("the first call is %+v", c)
	}
	q.Done(c, nil, errDisk, start)()
	run(t, q, m, start)
	if result != nil || m.values["agent:a"] != "1" || len(m.indexed()) != 2 {
		t.Errorf("error %v, values %v", result, m.values)
	}
	run(t, q, m, start.Add(staleAfter))
	if !maps.Equal(m.indexed(), map[string]bool{"agent:a": true}) {
		t.Errorf("index is %v after the sweep", m.indexed())
	}
}

func TestForgottenKeyIsRemovedWithItsQueuedSaves(t *testing.T) {
	m, q := newMemory("agent:a"), NewQueue(staleAfter, start)
	q.Save([]Op{set("agent:b", "1"), set("agent:a", "1")}, nil)
	q.Forget("agent:a")
	loaded := []byte("nothing yet")
	q.Load("agent:a", func(value []byte, _ error) { loaded = value })
	run(t, q, m, start)
	if _, left := m.values["agent:a"]; left || loaded != nil || m.indexed()["agent:a"] || !m.indexed()["agent:b"] {
		t.Errorf("values %v, loaded %q", m.values, loaded)
	}
	q.Forget("agent:b")
	q.Save([]Op{set("agent:b", "2")}, nil)
	run(t, q, m, start)
	if m.values["agent:b"] != "2" {
		t.Errorf("values %v: a save after forget was removed", m.values)
	}
}

// The agent may have started again, and wait for its checkpoint, while the storage hung.
func TestKeyThatIsForgottenDuringItsLoadIsNotLoaded(t *testing.T) {
	m, q := newMemory("agent:a"), NewQueue(staleAfter, start)
	loaded := []byte("nothing yet")
	q.Load("agent:a", func(value []byte, _ error) { loaded = value })
	c := q.Next(start)
	value, err := c.Do(t.Context(), m)
	q.Forget("agent:a")
	q.Done(c, value, err, start)()
	if string(value) != "old" || loaded != nil {
		t.Errorf("stored %q, loaded %q", value, loaded)
	}
}

func TestStoredKeysAreKnownOnceTheIndexIsRead(t *testing.T) {
	m, q := newMemory(keysOf(2)...), NewQueue(staleAfter, start)
	if _, known := q.stored(Key("/run/nixl/000")); known {
		t.Error("the index isn't read yet")
	}
	run(t, q, m, start)
	q.Forget(Key("/run/nixl/001"))
	for path, want := range map[string]bool{"/run/nixl/000": true, "/run/nixl/001": false, "/run/nixl/none": false} {
		if stored, known := q.stored(Key(path)); stored != want || !known {
			t.Errorf("%s: stored %v, known %v", path, stored, known)
		}
	}
}
