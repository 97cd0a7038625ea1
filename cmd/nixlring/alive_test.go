// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs/procstest"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// If a Collector still has the ring of an exited agent mapped, the agent isn't shown as
// running.
func TestConsumerOfARingIsNotItsAgent(t *testing.T) {
	for name, tt := range map[string]struct {
		namespace   string
		agent       bool
		inspect, ls string
	}{
		"running":                {procstest.Initial, true, "running", "yes"},
		"exited":                 {procstest.Initial, false, "exited", "no"},
		"exited, in a container": {procstest.Inner, false, "unknown: processes outside of this PID namespace can't be inspected", `\?`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "agent")
			w, err := ringbuf.Create(path, ringbuf.V4, 16)
			must.OK(t, err)
			must.OK(t, w.Close())
			consumer, err := ringbuf.OpenReader(path, ringbuf.Consume)
			must.OK(t, err)
			defer consumer.Close()
			list := []procstest.Process{{PID: 30, Lock: true}}
			if tt.agent {
				list = append(list, procstest.Process{PID: 31})
			}
			on := world{now: time.Now, proc: procstest.Make(t, path, tt.namespace, list...)}
			for command, want := range map[string]string{
				"inspect": `(?m)^Agent +` + tt.inspect,
				"ls":      `(?m)^\S+/agent +v4 +16 +0 +0% +` + tt.ls + ` `,
			} {
				r := runWith(t.Context(), on, command, path)
				if r.code != exitOK || !regexp.MustCompile(want).MatchString(r.out) {
					t.Errorf("%s doesn't match %s: %+v", command, want, r)
				}
			}
		})
	}
}
