// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package storetest provides tests with a store that NIXL's prometheus_mp exporter
// wrote, and writes other stores. It implements the format independently of package
// mpstore, so that tests compare two implementations.
package storetest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
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
	TxBytes = iota
	RxBytes
	TxRequests
	RxRequests
	Registered
	Deregistered
	XferTime
	PostTime
	NotPosted
	InvalidParam
	Backend

	Dropped = 20
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
func Size(slots int) int { return 752 + 288*slots }

func (w *Writer) atGauge(kind int) int64 { return atCounters + 8*int64(w.cfg.Slots+kind) }

func (w *Writer) atBucket(kind, bucket int) int64 {
	return atCounters + 8*int64(2*w.cfg.Slots+33*kind+bucket)
}

func (w *Writer) atSum(kind int) int64 { return w.atBucket(w.cfg.Slots, 0) + 8*int64(kind) }

// Create creates a store in dir, and holds its lock as a running process does. Exit is
// called at the end of the test.
func Create(tb testing.TB, dir string, cfg Config) *Writer {
	tb.Helper()
	if cfg.Agent == "" {
		cfg.Agent = "agent"
	}
	if cfg.Host == "" {
		cfg.Host = "host"
	}
	if cfg.PID == 0 {
		cfg.PID = 1000
	}
	if cfg.Started.IsZero() {
		cfg.Started = time.Now()
	}
	if cfg.Slots == 0 {
		cfg.Slots = 21
	}
	if cfg.Bounds == nil {
		cfg.Bounds = []float64{10, 100, 1000}
	}
	w := &Writer{tb: tb, cfg: cfg, values: make(map[int64]uint64)}
	w.path = filepath.Join(dir, fmt.Sprintf("nixl.%d.%d.%d.mmap", cfg.PID, cfg.Started.UnixNano(), cfg.Instance))
	staging := w.path + ".staging"
	f, err := os.OpenFile(staging, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	must.OK(tb, err)
	w.file = f
	tb.Cleanup(w.Exit)
	must.OK(tb, syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
	w.write(0, w.header())
	w.Updated(Uptime(tb))
	must.OK(tb, os.Rename(staging, w.path))
	return w
}

func (w *Writer) header() []byte {
	le := binary.LittleEndian
	b := make([]byte, Size(w.cfg.Slots))
	copy(b, "NIXLMPS1")
	le.PutUint32(b[8:], 1)
	le.PutUint32(b[12:], uint32(w.cfg.Slots))
	le.PutUint64(b[16:], uint64(w.cfg.PID))
	le.PutUint64(b[32:], w.cfg.Instance)
	le.PutUint64(b[40:], uint64(len(w.cfg.Bounds)))
	copy(b[48:], w.cfg.Agent)
	copy(b[304:], w.cfg.Host)
	copy(b[432:], w.cfg.Rank)
	for i, bound := range w.cfg.Bounds {
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
	w.Count(PostTime, post)
	w.Count(XferTime, took)
	w.Count(TxBytes+direction, bytes)
	w.Count(TxRequests+direction, 1)
}

// Count counts an event.
func (w *Writer) Count(kind int, v uint64) {
	w.add(atCounters+8*int64(kind), v)
	w.set(w.atGauge(kind), v)
	if kind != XferTime && kind != PostTime {
		return
	}
	bucket := 0
	for bucket < len(w.cfg.Bounds) && float64(v) > w.cfg.Bounds[bucket] {
		bucket++
	}
	w.add(w.atBucket(kind, bucket), 1)
	w.add(w.atSum(kind), v)
}

// SetCounter overwrites a counter.
func (w *Writer) SetCounter(kind int, v uint64) { w.set(atCounters+8*int64(kind), v) }

func (w *Writer) add(at int64, v uint64) { w.set(at, w.values[at]+v) }

func (w *Writer) set(at int64, v uint64) {
	w.values[at] = v
	w.write(at, binary.LittleEndian.AppendUint64(nil, v))
}

// Updated sets the time of the last update to a time since the machine was started.
func (w *Writer) Updated(uptime time.Duration) {
	w.write(atUpdated, binary.LittleEndian.AppendUint64(nil, uint64(uptime)))
}

// Touch sets the time of the last update of a store to now.
func Touch(tb testing.TB, path string) {
	tb.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must.OK(tb, err)
	defer f.Close()
	if _, err := f.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(Uptime(tb))), atUpdated); err != nil {
		tb.Fatal(err)
	}
}

// Uptime returns the time since the machine was started.
func Uptime(tb testing.TB) time.Duration {
	tb.Helper()
	text, err := os.ReadFile("/proc/uptime")
	must.OK(tb, err)
	var seconds float64
	if _, err := fmt.Sscan(string(text), &seconds); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(seconds * float64(time.Second))
}

func (w *Writer) write(at int64, b []byte) {
	if _, err := w.file.WriteAt(b, at); err != nil {
		w.tb.Fatal(err)
	}
}

// Copy copies the real store into dir and holds its lock, as a running process does,
// until exit is called or the test ends.
func Copy(tb testing.TB, dir string) (exit func()) {
	tb.Helper()
	path := filepath.Join(dir, Real)
	f, err := os.OpenFile(path+".staging", os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	must.OK(tb, err)
	exit = func() { _ = f.Close() }
	tb.Cleanup(exit)
	_, err = f.Write(Bytes(tb))
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err == nil {
		err = os.Rename(path+".staging", path)
	}
	must.OK(tb, err)
	return exit
}
