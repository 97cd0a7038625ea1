// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package storetest provides tests with a store that NIXL's prometheus_mp exporter
// wrote, and writes other stores. It implements the format independently of package
// mpstore, so that tests compare two implementations.
package storetest

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
)

// Real is the name of the store in testdata/stores that a real agent wrote.
const Real = "nixl.17832.1795211775677999379.0.mmap"

// Contents is the JSON form of the real store.
type Contents struct {
	PID       int64              `json:"pid"`
	Updated   uint64             `json:"last_update_ns"`
	Instance  uint64             `json:"instance"`
	Agent     string             `json:"agent_name"`
	Host      string             `json:"hostname"`
	LocalRank string             `json:"local_rank"`
	Bounds    []float64          `json:"bucket_bounds"`
	Counters  map[string]uint64  `json:"counters"`
	Gauges    map[string]uint64  `json:"gauges"`
	Hist      map[string]Buckets `json:"hist"`
}

// Buckets is a histogram in Contents.
type Buckets struct {
	Buckets []uint64 `json:"buckets"`
	Sum     uint64   `json:"sum"`
}

// Dir returns the directory testdata/stores.
func Dir(tb testing.TB) string {
	tb.Helper()
	return filepath.Join(ringtest.Root(tb), "testdata", "stores")
}

// Read returns the contents of the real store, from its JSON file.
func Read(tb testing.TB) (c Contents) {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(Dir(tb), "mpA.json"))
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	must.OK(tb, err)
	return c
}

// Bytes returns the bytes of the real store.
func Bytes(tb testing.TB) []byte {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join(Dir(tb), Real))
	must.OK(tb, err)
	return b
}

// Event types, as NIXL numbers them.
const (
	TxBytes    = 0
	TxRequests = 2
	xferTime   = 6
	postTime   = 7
	Backend    = 10
)

// Config is the header of a store. Zero fields have defaults.
type Config struct {
	Agent, Host, Rank string
	PID               int64
	Started           time.Time
	Instance          uint64
	Bounds            []float64 // in microseconds
	Slots             int       // event types; 21 by default
}

// Writer writes a store in place of a process.
type Writer struct {
	tb     testing.TB
	cfg    Config
	file   *os.File
	path   string
	values map[int64]uint64 // by offset
}

const (
	atUpdated  = 24
	atCounters = 752
)

// Size returns the size of a store with a number of event types.
func Size(slots int) int { return atCounters + 288*slots }

// Create creates a store in dir, and holds its lock as a running process does. Exit is
// called at the end of the test.
func Create(tb testing.TB, dir string, cfg Config) *Writer {
	tb.Helper()
	cfg.Agent, cfg.Host = cmp.Or(cfg.Agent, "agent"), cmp.Or(cfg.Host, "host")
	cfg.PID, cfg.Started, cfg.Slots = cmp.Or(cfg.PID, 1000), cmp.Or(cfg.Started, time.Now()), cmp.Or(cfg.Slots, 21)
	if cfg.Bounds == nil {
		cfg.Bounds = []float64{10, 100, 1000}
	}
	path := filepath.Join(dir, fmt.Sprintf("nixl.%d.%d.%d.mmap", cfg.PID, cfg.Started.UnixNano(), cfg.Instance))
	w := &Writer{tb: tb, cfg: cfg, path: path, values: make(map[int64]uint64)}
	w.file = create(tb, path, cfg.header(Uptime(tb)))
	return w
}

// create creates a locked file, and closes it at the end of the test.
func create(tb testing.TB, path string, b []byte) *os.File {
	tb.Helper()
	f, err := os.OpenFile(path+".staging", os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	must.OK(tb, err)
	tb.Cleanup(func() { _ = f.Close() })
	must.OK(tb, syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
	_, err = f.Write(b)
	must.OK(tb, err)
	must.OK(tb, os.Rename(f.Name(), path))
	return f
}

func (c *Config) header(updated time.Duration) []byte {
	le := binary.LittleEndian
	b := make([]byte, Size(c.Slots))
	copy(b, "NIXLMPS1")
	le.PutUint32(b[8:], 1)
	le.PutUint32(b[12:], uint32(c.Slots))
	le.PutUint64(b[16:], uint64(c.PID))
	le.PutUint64(b[atUpdated:], uint64(updated))
	le.PutUint64(b[32:], c.Instance)
	le.PutUint64(b[40:], uint64(len(c.Bounds)))
	copy(b[48:], c.Agent)
	copy(b[304:], c.Host)
	copy(b[432:], c.Rank)
	for i, bound := range c.Bounds {
		le.PutUint64(b[496+8*i:], math.Float64bits(bound))
	}
	return b
}

// Path returns the path of the store.
func (w *Writer) Path() string { return w.path }

// Name returns the name of the store.
func (w *Writer) Name() string { return filepath.Base(w.path) }

// Exit releases the lock, as the exit of the process does. It doesn't remove the file.
func (w *Writer) Exit() { _ = w.file.Close() }

// Transfer counts a transfer. direction is 0 for transmitting and 1 for receiving.
func (w *Writer) Transfer(direction int, bytes, took, post uint64) {
	w.Count(postTime, post)
	w.Count(xferTime, took)
	w.Count(TxBytes+direction, bytes)
	w.Count(TxRequests+direction, 1)
}

// Count counts an event.
func (w *Writer) Count(kind int, v uint64) {
	slots := w.cfg.Slots
	w.add(kind, v)
	w.write(atCounters+8*int64(slots+kind), v)
	if kind != xferTime && kind != postTime {
		return
	}
	bucket := 0
	for bucket < len(w.cfg.Bounds) && float64(v) > w.cfg.Bounds[bucket] {
		bucket++
	}
	w.add(2*slots+33*kind+bucket, 1)
	w.add(2*slots+33*slots+kind, v) // the sum
}

// add adds to the number i after the header.
func (w *Writer) add(i int, v uint64) {
	at := atCounters + 8*int64(i)
	w.values[at] += v
	w.write(at, w.values[at])
}

// Updated sets the time of the last update to a time since the machine was started.
func (w *Writer) Updated(uptime time.Duration) { w.write(atUpdated, uint64(uptime)) }

func (w *Writer) write(at int64, v uint64) {
	_, err := w.file.WriteAt(binary.LittleEndian.AppendUint64(nil, v), at)
	must.OK(w.tb, err)
}

// Uptime returns the time since the machine was started.
func Uptime(tb testing.TB) time.Duration {
	tb.Helper()
	uptime, err := files.Uptime()
	must.OK(tb, err)
	return uptime
}

// Copy copies the real store into dir, with an update just now, and holds its lock, as a
// running process does, until exit is called or the test ends.
func Copy(tb testing.TB, dir string) (exit func()) {
	tb.Helper()
	b := Bytes(tb)
	binary.LittleEndian.PutUint64(b[atUpdated:], uint64(Uptime(tb)))
	f := create(tb, filepath.Join(dir, Real), b)
	return func() { _ = f.Close() }
}
