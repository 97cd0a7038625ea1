// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/process"
)

// lookup returns an environment.
func lookup(env map[string]string) process.Env {
	return func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}
}

// volume creates a volume of a pod below the kubelet's directory, with agent prefill-0.
func volume(t *testing.T) (pods string) {
	t.Helper()
	pods = t.TempDir()
	dir := filepath.Join(pods, "0123456789abcdef", "volumes", "kubernetes.io~empty-dir", "rings")
	must.OK(t, os.MkdirAll(dir, 0o700))
	must.OK(t, os.Symlink(filepath.Join(simulating(t, "--no-consumer"), "sim-0"), filepath.Join(dir, "link"))) // links aren't followed
	must.OK(t, os.Rename(filepath.Join(simulating(t, "--no-consumer", "--name", "prefill"), "prefill-0"), filepath.Join(dir, "prefill-0")))
	return pods
}

// Without an argument, commands find the agents themselves.
func TestAgentsAreFoundWithoutAnArgument(t *testing.T) {
	dir := simulating(t, "--no-consumer", "--name", "decode")
	pods := volume(t)
	proc := procWith(t, "NIXL_TELEMETRY_ENABLE=y\x00NIXL_TELEMETRY_DIR="+dir+"\x00")
	for name, tt := range map[string]struct {
		env  map[string]string
		args []string
		want string
	}{
		"those of all processes":         {want: "decode"},
		"those of a variable":            {env: map[string]string{process.EnvDir: dir, envKubelet: pods}, want: "decode"},
		"those of pods, by a variable":   {env: map[string]string{envKubelet: pods}, want: "01234567/prefill"},
		"those of pods":                  {args: []string{"--kubelet=" + pods}, want: "01234567/prefill"},
		"those of pods, not a directory": {env: map[string]string{process.EnvDir: dir}, args: []string{"--kubelet=" + pods}, want: "01234567/prefill"},
	} {
		w := world{now: time.Now, proc: proc, env: lookup(tt.env)}
		for command, args := range map[string][]string{"top": {"--once", "-w", "50ms"}, "why": {"--for", "500ms"}} {
			r := runWith(t.Context(), w, append(append([]string{command}, args...), tt.args...)...)
			if !strings.Contains(r.out, tt.want) || strings.Contains(r.out, "link") {
				t.Errorf("%s: %s: exit code %d\n%s%s", name, command, r.code, r.out, r.err)
			}
		}
	}
}

func TestDirectoryOfTheArgumentsIsRead(t *testing.T) {
	dir := simulating(t, "--no-consumer", "--name", "prefill")
	env := map[string]string{process.EnvDir: t.TempDir(), envKubelet: t.TempDir()}
	r := nixlring(t.Context(), env, "top", dir, "--once", "-w", "10ms")
	if r.code != exitOK || !strings.Contains(r.out, "prefill") {
		t.Errorf("%+v", r)
	}
	missing := filepath.Join(dir, "missing")
	w := world{now: time.Now, proc: missing, env: lookup(nil)}
	if r := runWith(t.Context(), w, "why", "--for", "100ms"); r.code != exitError || !strings.HasPrefix(r.err, "nixlring: find processes: open "+missing+": ") {
		t.Errorf("%+v", r)
	}
	if r := nixlring(t.Context(), nil, "top", "--once", "-w", "10ms", "--kubelet="+missing); r.code != exitError || !strings.Contains(r.err, missing+": no such directory; specify where the kubelet") {
		t.Errorf("%+v", r)
	}
	if r := nixlring(t.Context(), env, "top", dir, "--kubelet"); r.code != exitUsage || !strings.Contains(r.err, "--kubelet discovers agents; omit "+dir) {
		t.Errorf("%+v", r)
	}
}
