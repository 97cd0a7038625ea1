// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"crypto/rand"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// agent is a NIXL agent.
type agent struct {
	drop               bool
	ring               *ringbuf.Writer
	transfers, written int // events, in the second
}

func create(o options) (*agent, error) {
	name := expand(o.name, o.rank)
	if name == "" {
		name = rand.Text()
	}
	w, err := ringbuf.Create(filepath.Join(o.dir, name), ringbuf.V4, o.slots)
	return &agent{drop: o.drop, ring: w}, err
}

func expand(pattern string, rank int) string {
	return strings.ReplaceAll(pattern, "%d", strconv.Itoa(rank))
}

// write writes the events of n transfers, as in one flush. All transfers have different sizes, so a lost or repeated
// transfer changes the total of bytes. By default, a full ring is an error: a Collector has to drain it before.
func (a *agent) write(n int) error {
	for range n {
		i := uint64(a.transfers)
		events := []ringbuf.Event{
			ringbuf.NewEvent(ringbuf.TypeXferPostTime, 1+i), ringbuf.NewEvent(ringbuf.TypeXferTime, 1000+i),
			ringbuf.NewEvent(ringbuf.TypeTxBytes, 4096+i), ringbuf.NewEvent(ringbuf.TypeTxRequests, 1),
		}
		pushed, err := a.ring.PushBatch(events)
		if err == nil && pushed != len(events) && !a.drop {
			err = fmt.Errorf("%s is full, after %d events", a.ring.Path(), a.written+pushed)
		}
		if err != nil {
			return err
		}
		a.transfers++
		a.written += pushed
	}
	return nil
}
