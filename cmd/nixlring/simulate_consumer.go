// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"regexp"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
)

// takeOverAfter is the time for a Collector that is already running to find the rings.
const takeOverAfter = 2 * time.Second

// consume takes the events of simulated agents until ctx is done, so that their rings don't fill up. It begins after
// some time, and leaves the rings that have another consumer.
func consume(ctx context.Context, fleet *simulate.FleetConfig, after time.Duration) error {
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(after):
	}
	e, err := engine.New(engine.Config{
		Directories: []string{fleet.Dir}, Include: []string{regexp.QuoteMeta(fleet.Prefix) + "-*"}, RunInterval: fleet.Agent.RunInterval,
	})
	if err != nil {
		return err
	}
	if err := e.Start(nil); err != nil {
		return err
	}
	<-ctx.Done()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second) // for file systems that hang
	defer cancel()
	return e.Stop(stopping)
}
