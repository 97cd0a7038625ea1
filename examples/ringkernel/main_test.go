// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
	"github.com/nixl-otel/nixl-otel/internal/must"
)

func defaults() settings {
	return settings{
		every: 5 * time.Second, rate: 1000, queue: 256, bad: 0.01,
		pauseEvery: 10 * time.Second, pause: time.Second, telemetry: true,
	}
}

func TestRunPrintsSummariesPeriodicallyAndAtTheEnd(t *testing.T) {
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	synctest.Test(t, func(t *testing.T) {
		s := defaults()
		s.duration = 12 * time.Second
		var out bytes.Buffer
		must.OK(t, run(t.Context(), s, &out))
		if n := strings.Count(out.String(), "=== Telemetry @ "); n != 3 {
			t.Errorf("%d summaries, want 3:\n%s", n, &out)
		}
		end := regexp.MustCompile(`(?m)^  format: terminated, (\d+) processed(?s:.*)^format sent (\d+) results\n$`).FindStringSubmatch(out.String())
		if end == nil || end[1] != end[2] || end[1] == "0" {
			t.Errorf("the last kernel's results aren't at the end: %q\n%s", end, &out)
		}
		if n := strings.Count(out.String(), ": terminated, "); n != 3 {
			t.Errorf("%d kernels terminated, want 3:\n%s", n, &out)
		}
	})
}

// A kernel processes or rejects each message that it receives, and sends each message
// that it processes to the next kernel.
func TestPipelineLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := ringkernel.NewRuntime()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		newPipeline(rt, defaults()).run(ctx)

		all := rt.Summary().Kernels
		format, parse, reduce := all[0], all[1], all[2] // sorted by ID
		for _, k := range all {
			if k.State != ringkernel.StateTerminated || k.InputSize != 0 {
				t.Errorf("%s is %v with %d messages in its queue", k.KernelID, k.State, k.InputSize)
			}
			if k.MessagesReceived != k.MessagesProcessed+k.Errors || k.MessagesSent != k.MessagesProcessed {
				t.Errorf("%s lost messages: %+v", k.KernelID, k)
			}
		}
		if parse.MessagesSent != reduce.MessagesReceived || reduce.MessagesSent != format.MessagesReceived {
			t.Errorf("messages were lost between kernels: %+v", all)
		}
		if parse.Errors == 0 || reduce.Errors == 0 || parse.MessagesDropped == 0 {
			t.Errorf("no errors or no drops: %+v", all)
		}
	})
}

func TestInvalidSettingsAreRejected(t *testing.T) {
	for name, change := range map[string]func(*settings){
		"-every":       func(s *settings) { s.every = 0 },
		"-rate":        func(s *settings) { s.rate = 0 },
		"-queue":       func(s *settings) { s.queue = -1 },
		"-bad":         func(s *settings) { s.bad = 1.5 },
		"-duration":    func(s *settings) { s.duration = -1 },
		"-pause-every": func(s *settings) { s.pauseEvery = -1 },
	} {
		s := defaults()
		change(&s)
		if err := run(t.Context(), s, nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want an error that names the flag", name, err)
		}
	}
}
