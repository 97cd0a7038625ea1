// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/live"
	"github.com/nixl-otel/nixl-otel/internal/live/livetest"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/process"
)

// collecting is a world with a Collector, which counts 1,000 bytes per second of decode-0 and finds
// a slow transfer in each frame.
func collecting(t *testing.T) world {
	t.Helper()
	n := 0
	begin := time.Now()
	path := livetest.Serve(t, func(r live.Request) string {
		n++
		totals := ""
		if !r.NoTotals {
			totals = fmt.Sprintf(`"totals":{"transmit_bytes":%d,"transfers":%[1]d},`, 1000*n)
		}
		transfers := ""
		if r.Transfers != nil && r.Transfers.SlowTransfer > 0 {
			transfers = fmt.Sprintf(`{"time":"2026-01-02T03:04:05Z","bytes":%d,"transfer_time_us":2000000,"cause":"slow_transfer"}`, n)
		}
		return fmt.Sprintf(`{"version":1,"time":%q,"host":"gpu-7","collector":{"pid":1,"program":"otelcol-nixl","consumes":true},
			"agents":[{"id":"a","name":"decode-0","path":"/proc/7/root/decode-0","attributes":{"k8s.pod.uid":"0123456789","nixl.local_rank":"3"},
			"layout":"v4","up":true,"ring":{"capacity":64},%s"transfers":[%s]}]}`,
			begin.Add(time.Duration(n)*time.Second).Format(time.RFC3339Nano), totals, transfers)
	})
	return world{now: time.Now, proc: filepath.Join(t.TempDir(), "no-processes"), socket: path}
}

func TestCommandsShowWhatACollectorCounts(t *testing.T) {
	w := collecting(t)
	r := runWith(t.Context(), w, "top", "--once", "-w", "10ms", "-o", "json")
	var got []measured
	must.OK(t, json.Unmarshal([]byte(r.out), &got))
	if r.code != exitOK || r.err != "" || len(got) != 1 || got[0].Agent != "01234567/decode-0" || got[0].Transmit != 1000 ||
		got[0].Reader != "otelcol-nixl" || got[0].Attributes["nixl.local_rank"] != "3" {
		t.Errorf("%+v", r)
	}
	r = runWith(t.Context(), w, "why", "--for", "200ms")
	if !strings.HasPrefix(r.err, "Nothing found, but not everything was judged: 1 agent on gpu-7, watched for ") || r.code != exitNoRing {
		t.Errorf("%+v", r)
	}
	var v verdict
	r = runWith(t.Context(), w, "why", "--for", "200ms", "-o", "json")
	must.OK(t, json.Unmarshal([]byte(r.out), &v))
	if v.Host != "gpu-7" || v.Directory != "" || v.Agents != 1 {
		t.Errorf("%+v", v)
	}
	r = runWith(t.Context(), w, "slow", "-c", "2")
	if lines := strings.Split(r.out, "\n"); r.code != exitOK || len(lines) != 4 || !strings.HasSuffix(lines[1], "slow_transfer   01234567/decode-0") ||
		!strings.HasPrefix(r.err, "Slow transfers printed: 2; transfers observed: ") {
		t.Errorf("%+v", r)
	}
}

func TestDirectoryOfTheArgumentsIsRead(t *testing.T) {
	w := collecting(t)
	dir := runAgents(t, "prefill")
	r := runWith(t.Context(), w, "top", dir, "--once", "-w", "10ms")
	if r.code != exitOK || !strings.Contains(r.out, "prefill") || strings.Contains(r.out, "decode-0") {
		t.Errorf("%+v", r)
	}
	w.env = func(name string) (string, bool) { // also in the environment of a Collector
		if name == process.EnvDir {
			return dir, true
		}
		return "", false
	}
	if r := runWith(t.Context(), w, "top", "--once", "-w", "10ms"); r.code != exitOK || !strings.Contains(r.out, "decode-0") {
		t.Errorf("%+v", r)
	}
}

func TestSocketThatCannotBeUsed(t *testing.T) {
	dead := filepath.Join(t.TempDir(), "s")
	must.OK(t, os.WriteFile(dead, nil, 0o600))
	for name, w := range map[string]world{
		"missing": {now: time.Now, proc: "/proc", socket: "/nowhere/s"}, "stale": {now: time.Now, proc: "/proc", socket: dead},
	} {
		if r := runWith(t.Context(), w, "top", "--once", "-w", "10ms", "--include", "none-of-these"); r.code != exitOK || strings.Contains(r.err, "socket") {
			t.Errorf("%s: %+v", name, r)
		}
		for _, command := range []string{"top", "why", "slow"} {
			args := []string{command, "--socket", w.socket}
			if command == "top" {
				args = append(args, "--once")
			}
			if r := runWith(t.Context(), w, args...); r.code != exitError || !strings.Contains(r.err, w.socket+": no") {
				t.Errorf("%s: %v: %+v", name, args, r)
			}
		}
	}
	for _, args := range [][]string{{"/tmp", "--socket", dead}, {"/tmp", "--processes"}, {"--processes", "--socket", dead}} {
		if r := nixlring(t.Context(), nil, append([]string{"top"}, args...)...); r.code != exitUsage {
			t.Errorf("%v: %+v", args, r)
		}
	}
}
