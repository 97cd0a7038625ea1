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

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/process"
)

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

func TestAgentsAreFoundWhereTheArgumentsAndTheEnvironmentSay(t *testing.T) {
	dir, pods := simulating(t, "--no-consumer", "--name", "decode"), volume(t)
	proc := procWith(t, "NIXL_TELEMETRY_ENABLE=y\x00NIXL_TELEMETRY_DIR="+dir+"\x00")
	missing := filepath.Join(dir, "missing")
	for name, tt := range map[string]struct {
		env  map[string]string
		args []string
		want string
	}{
		"the argument":                   {map[string]string{process.EnvDir: missing, envKubelet: missing}, []string{dir}, "decode"},
		"those of all processes":         {nil, nil, "decode"},
		"those of a variable":            {map[string]string{process.EnvDir: dir, envKubelet: pods}, nil, "decode"},
		"those of pods, by a variable":   {map[string]string{envKubelet: pods}, nil, "01234567/prefill"},
		"those of pods":                  {nil, []string{"--kubelet=" + pods}, "01234567/prefill"},
		"those of pods, not a directory": {map[string]string{process.EnvDir: dir}, []string{"--kubelet=" + pods}, "01234567/prefill"},
		"no pods":                        {nil, []string{"--kubelet=" + missing}, missing + ": no such directory; specify where the kubelet"},
	} {
		w := world{now: time.Now, proc: proc, env: lookup(tt.env)}
		r := runWith(t.Context(), w, append([]string{"top", "-w", "50ms"}, tt.args...)...)
		if all := r.out + r.err; !strings.Contains(all, tt.want) || strings.Contains(all, "link") {
			t.Errorf("%s: exit code %d\n%s", name, r.code, all)
		}
	}
	w := world{now: time.Now, proc: missing, env: lookup(nil)}
	if r := runWith(t.Context(), w, "why", "--for", "100ms"); r.code != exitNoRing || !strings.HasPrefix(r.err, "nixlring: find processes: open "+missing+": ") {
		t.Errorf("%+v", r)
	}
}
