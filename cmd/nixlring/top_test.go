// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/fleet"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// framesOf returns the frames that a command has printed.
func framesOf(t *testing.T, r result) (list []*diagnose.Frame) {
	t.Helper()
	for line := range strings.Lines(r.out) {
		f := new(diagnose.Frame)
		must.OK(t, json.Unmarshal([]byte(line), f))
		list = append(list, f)
	}
	return list
}

func TestTopPrintsOneMeasurementIfNobodyWatches(t *testing.T) {
	dir := simulating(t, "--no-consumer", "-n", "2")
	r := nixlring(t.Context(), nil, "top", dir, "--window", "1s", "--output", "json", "--sort", "agent")
	list := framesOf(t, r)
	if r.code != exitOK || r.err != "" || len(list) != 2 {
		t.Fatalf("%+v", r)
	}
	if before, a := list[0].Agent(filepath.Join(dir, "sim-1")), list[1].Agent(filepath.Join(dir, "sim-1")); a.Moved[0].Bytes <= before.Moved[0].Bytes {
		t.Errorf("%+v after %+v", a, before)
	}

	r = nixlring(t.Context(), nil, "top", dir, "--window", "50ms")
	var first []string // column
	for line := range strings.Lines(r.out) {
		first = append(first, strings.Fields(line)[0])
	}
	if diff := cmp.Diff([]string{"AGENT", "sim-0", "sim-1"}, first); diff != "" || r.code != exitOK || r.err != "" {
		t.Errorf("%+v: %s", r, diff)
	}
}

// screenWriter is the output of a terminal.
type screenWriter struct {
	seen strings.Builder
	want string
	done chan struct{} // closed when want was written
}

func (s *screenWriter) Write(p []byte) (int, error) {
	before := strings.Contains(s.seen.String(), s.want)
	s.seen.Write(p)
	if !before && strings.Contains(s.seen.String(), s.want) {
		close(s.done)
	}
	return len(p), nil
}

func TestTopDrawsTheScreenUntilItQuits(t *testing.T) {
	dir := simulating(t, "--no-consumer")
	for _, quit := range []string{"key", "context", "key, without colors"} {
		t.Run(quit, func(t *testing.T) {
			source, err := fleet.NewRings(fleet.Config{Directory: dir, Interval: 10 * time.Millisecond})
			must.OK(t, err)
			defer source.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			input, keyboard := io.Pipe()
			out := &screenWriter{want: "sim-0", done: make(chan struct{})}
			go func() {
				<-out.done
				if strings.HasPrefix(quit, "key") {
					_, _ = keyboard.Write([]byte("q"))
				} else {
					cancel()
				}
			}()
			f := topFlags{window: time.Second, sort: "agent"}
			env := map[string]string{}
			if strings.Contains(quit, "without") {
				env["NO_COLOR"] = "yes, please"
			}
			w := world{out: out, env: lookup(env)}
			must.OK(t, f.show(ctx, w, source, tea.WithInput(input), tea.WithWindowSize(120, 20), tea.WithEnvironment([]string{
				"TERM=xterm-256color", "CLICOLOR_FORCE=1",
			})))
			must.OK(t, keyboard.Close())
			colored := strings.Contains(out.seen.String(), "\x1b[90m") || strings.Contains(out.seen.String(), ";90m")
			if want := len(env) == 0; colored != want {
				t.Errorf("colors: %v, want %v", colored, want)
			}
		})
	}
}

func TestTopSaysThatItWasInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := nixlring(ctx, nil, "top", t.TempDir()); r.code != exitError || r.err != "nixlring: interrupted\n" {
		t.Errorf("%+v", r)
	}
}
