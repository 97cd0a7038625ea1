// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/fleet"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// runAgents creates a directory and runs agents in it until the test ends.
func runAgents(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		traffic := simulate.KVCache()
		traffic.ErrorShare = 0.1
		a, err := simulate.New(simulate.Config{
			Path: filepath.Join(dir, name), Rate: 2000, Traffic: traffic, RunInterval: 10 * time.Millisecond,
			Seed: 1, Lives: []simulate.Life{{Layout: ringbuf.V4, Capacity: 1 << 16}},
		})
		must.OK(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		must.OK(t, a.Start())
		go func() { done <- a.Run(ctx, 0) }()
		t.Cleanup(func() {
			cancel()
			must.OK(t, <-done)
		})
	}
	return dir
}

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

func TestTopOncePrintsOneMeasurement(t *testing.T) {
	dir := runAgents(t, "prefill", "decode")
	r := nixlring(t.Context(), nil, "top", dir, "--window", "100ms", "--output", "json", "--sort", "agent")
	list := framesOf(t, r)
	if r.code != exitOK || r.err != "" || len(list) != 2 {
		t.Fatalf("%+v", r)
	}
	before, a := list[0].Agent(filepath.Join(dir, "decode")), list[1].Agent(filepath.Join(dir, "decode"))
	if a.Name != "decode" || a.Path != a.ID || a.Layout != "v4" || a.Ring.Capacity != 1<<16 || a.Ring.Consumer != nil || a.Up != diagnose.Yes {
		t.Errorf("%+v", a)
	}
	if a.Moved[0].Bytes <= before.Moved[0].Bytes || a.Failed() <= before.Failed() || *a.Memory <= 0 || a.Fill() <= 0 || a.Times.Quantile(0.5) == 0 {
		t.Errorf("%+v\n%+v", before, a)
	}

	r = nixlring(t.Context(), nil, "top", dir, "--window", "50ms", "--once")
	if r.code != exitOK || r.err != "" || !strings.HasPrefix(r.out, "AGENT    ") || strings.Count(r.out, "\n") != 3 {
		t.Errorf("%+v", r)
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
	dir := runAgents(t, "prefill")
	for _, quit := range []string{"key", "context", "key, without colors"} {
		t.Run(quit, func(t *testing.T) {
			source, err := fleet.NewRings(fleet.Config{Directory: dir, Interval: 10 * time.Millisecond})
			must.OK(t, err)
			defer source.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			input, keyboard := io.Pipe()
			out := &screenWriter{want: "prefill", done: make(chan struct{})}
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
			w := world{out: out, env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
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

func TestTopIncludesSubdirectoriesIfAsked(t *testing.T) {
	dir := rings(t)
	must.OK(t, os.Mkdir(filepath.Join(dir, "team"), 0o755))
	must.OK(t, os.Rename("decode", filepath.Join(dir, "team", "decode")))
	for _, tt := range []struct {
		want []string
		args []string
	}{
		{[]string{"pre\nfill"}, nil},
		{[]string{"pre\nfill", "team/decode"}, []string{"--include", "**"}},
		{[]string{"team/decode"}, []string{"--include", "team/*"}},
	} {
		r := nixlring(t.Context(), nil, append([]string{"top", dir, "-w", "10ms", "-o", "json"}, tt.args...)...)
		list := framesOf(t, r)
		var names []string
		for _, a := range list[len(list)-1].Agents {
			names = append(names, a.Name)
			if a.Up != diagnose.No {
				t.Errorf("%v: %+v", tt.args, a)
			}
		}
		if diff := cmp.Diff(tt.want, names); diff != "" {
			t.Errorf("%v: %s", tt.args, diff)
		}
	}
}
