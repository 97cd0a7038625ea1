// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package interop

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
)

// counted holds the counters of a store, or of several.
type counted struct {
	Bytes, Requests, Time, Post uint64
	Buckets                     [4]uint64 // of transfer times
}

// A C++ program that writes a store is killed repeatedly while the store is read.
// Some stores are then removed, as NIXL's own reader does. The sum of all series must equal
// the sum of all stores at the time when their process was killed.
func TestTotalsOfKilledProcessesAreExact(t *testing.T) {
	program, dir := program(t, "store"), t.TempDir()
	h, err := engine.New(engine.Config{
		Directories: []string{dir}, Stores: true, StaleAfter: time.Hour, Report: func(n notice.Notice) { t.Log(n) },
	})
	if err == nil {
		err = h.Start(nil)
	}
	must.OK(t, err)
	defer func() {
		if err := h.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var want, last counted
	for range 10 {
		cmd := exec.CommandContext(t.Context(), program, dir, "agent", strconv.Itoa(1+random.IntN(200_000)))
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, os.Stderr
		must.OK(t, cmd.Start())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for running := true; running; {
			select {
			case err := <-ended:
				if !errors.As(err, new(*exec.ExitError)) || !strings.Contains(err.Error(), "killed") {
					t.Fatalf("the program exited with %v, want it to be killed", err)
				}
				running = false
			default:
				got := collect(t, h)
				if got.Bytes < last.Bytes || got.Requests < last.Requests || got.Buckets[1] < last.Buckets[1] {
					t.Fatalf("totals decreased from %+v to %+v", last, got)
				}
				last = got
			}
		}
		path := strings.TrimSpace(out.String())
		want.add(readStore(t, path))
		// This collection discovers a store whose process was killed at once.
		collect(t, h)
		if random.IntN(2) == 0 {
			must.OK(t, os.Remove(path))
		}
		if d := cmp.Diff(want, collect(t, h)); d != "" {
			t.Fatalf("(-stores +totals)\n%s", d)
		}
	}
}

// collect returns the sum of all series.
func collect(t *testing.T, h *engine.Engine) (c counted) {
	t.Helper()
	h.Refresh(t.Context())
	collection, err := h.Collect(t.Context(), false)
	must.OK(t, err)
	for _, s := range collection.Snapshots {
		one := counted{
			Bytes: s.Totals.Size(tally.Transmit).Total().Lo, Requests: s.Totals.Requests(tally.Transmit).Sum.Lo,
			Time: s.Totals.Duration().Total().Lo, Post: s.Totals.PostDuration().Total().Lo,
		}
		copy(one.Buckets[:], s.Totals.Duration().Counts())
		c.add(one)
	}
	return c
}

// readStore reads the counters of a store that the test compares.
func readStore(t *testing.T, path string) (c counted) {
	t.Helper()
	b, err := os.ReadFile(path)
	must.OK(t, err)
	const counters, buckets = 752, 1088 + 6*33*8
	at := func(offset int) uint64 { return binary.LittleEndian.Uint64(b[offset:]) }
	c = counted{Bytes: at(counters), Requests: at(counters + 2*8), Time: at(counters + 6*8), Post: at(counters + 7*8)}
	for i := range c.Buckets {
		c.Buckets[i] = at(buckets + 8*i)
	}
	return c
}

func (c *counted) add(d counted) {
	c.Bytes += d.Bytes
	c.Requests += d.Requests
	c.Time += d.Time
	c.Post += d.Post
	for i, n := range d.Buckets {
		c.Buckets[i] += n
	}
}
