// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sink_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/sink"
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
