// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/nixl-otel/nixl-otel/internal/oracle"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// A test advances an agent interval by interval, drains the ring in between, and compares.
func ExampleAgent_Interval() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	agent, err := simulate.New(simulate.Config{
		Path:  filepath.Join(dir, "agent"),
		Lives: []simulate.Life{{Layout: ringbuf.V3}},
		Rate:  1000, Operations: 500, Seed: 1, Journal: oracle.New(),
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		log.Fatal(err)
	}
	for !agent.Done() {
		if err := agent.Interval(); err != nil {
			log.Fatal(err)
		}
		// Drain the ring here.
	}
	if err := agent.Stop(); err != nil {
		log.Fatal(err)
	}
	totals := agent.Totals()
	fmt.Println(totals.Operations, "transfers in", totals.Flushes, "flushes")
	fmt.Println(totals.Points["nixl.transfer.requests{nixl.transfer.direction=transmit}"], "of them are writes")
	// Output:
	// 500 transfers in 6 flushes
	// 299 of them are writes
}
