// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sink_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/sink"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// slowTransfers is a custom sink that prints slow transfers.
type slowTransfers struct {
	limit time.Duration
	seen  int
}

func (s *slowTransfers) Write(events []sink.Event) error {
	for _, e := range events {
		took := time.Duration(e.Value) * time.Microsecond
		if e.Name == "agent_xfer_time" && took > s.limit {
			s.seen++
			fmt.Printf("%s: a transfer took %v\n", e.Agent, took)
		}
	}
	return nil
}

// A custom sink is a type with a Write method. This sink receives the events of an
// agent written in Go; rings.Config.Sinks passes it the events of rings.
func Example() {
	ctx := context.Background()
	slow := &slowTransfers{limit: time.Millisecond}
	a, err := agent.New("worker-0", agent.WithSinks(slow))
	if err != nil {
		log.Fatal(err)
	}
	a.Transfer(ctx, agent.Transmit, 1<<20, 20*time.Microsecond, 300*time.Microsecond)
	a.Transfer(ctx, agent.Receive, 1<<30, 20*time.Microsecond, 45*time.Millisecond)
	if err := a.Close(); err != nil { // flushes
		log.Fatal(err)
	}
	fmt.Println(slow.seen, "slow")
	// Output:
	// worker-0: a transfer took 45ms
	// 1 slow
}

// This agent writes its events to the file in NIXL_TELEMETRY_CSV_FILE.
func ExampleOpenCSVFromEnv() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "nixl")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "events.csv")
	if err := os.Setenv("NIXL_TELEMETRY_CSV_FILE", path); err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.Unsetenv("NIXL_TELEMETRY_CSV_FILE") }()

	file, err := sink.OpenCSVFromEnv()
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	a, err := agent.New("worker-0", agent.WithSinks(file))
	if err != nil {
		log.Fatal(err)
	}
	a.Transfer(ctx, agent.Transmit, 1<<20, 20*time.Microsecond, 300*time.Microsecond)
	a.Event(ctx, ringbuf.CategoryBackend, "retries, total", 2)
	if err := a.Close(); err != nil {
		log.Fatal(err)
	}

	rows, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	for row := range strings.Lines(string(rows)) {
		_, afterTime, _ := strings.Cut(row, ",")
		fmt.Print(afterTime)
	}
	// Output:
	// category,event_name,value
	// 5,agent_xfer_post_time,20
	// 5,agent_xfer_time,300
	// 1,agent_tx_bytes,1048576
	// 1,agent_tx_requests_num,1
	// 3,"retries, total",2
}
