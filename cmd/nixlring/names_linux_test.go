// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// unreadable creates two rings whose names differ only in a byte that isn't valid UTF-8.
func unreadable(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "dir\xff")
	must.OK(t, os.Mkdir(dir, 0o700))
	for _, name := range []string{"agent\xfe", "agent\xff"} {
		pushed(t, filepath.Join(dir, name), ringbuf.V4, transferred(4096, 2*time.Second, 0, time.Now()))
	}
	return dir
}

// Whatever the names of files, two names are two agents.
func TestAgentsWhoseNamesAreNotValidUTF8AreShown(t *testing.T) {
	dir := unreadable(t)
	for _, tt := range []struct {
		code int
		args []string
		want []string // in standard output
	}{
		{exitOK, []string{"top", dir, "--window", "50ms", "-o", "json"}, []string{`agent\\xfe`, `agent\\xff`}},
		{exitError, []string{"why", dir, "--for", "100ms"}, []string{`agent\xfe`}},
		{exitError, []string{"why", dir, "--for", "100ms", "-o", "json"}, []string{`agent\\xfe`, `agent\\xff`}},
		{exitOK, []string{"simulate", dir, "--name", "sim\xff", "--duration", "50ms"}, []string{"events written"}},
	} {
		r := nixlring(t.Context(), nil, tt.args...)
		for _, want := range tt.want {
			if r.code != tt.code || !strings.Contains(r.out, want) {
				t.Errorf("%q: exit code %d, %q isn't in:\n%s%s", tt.args, r.code, want, r.out, r.err)
			}
		}
	}
}

func TestPageShowsAgentsWhoseNamesAreNotValidUTF8(t *testing.T) {
	dir := unreadable(t)
	address, _ := serve(t, dir, "--listen", "127.0.0.1:0")
	must.EventuallyTrue(t, "state with both agents", func() bool {
		_, body := get(t, address+"state.json")
		text, err := io.ReadAll(body)
		must.OK(t, err)
		return strings.Contains(string(text), `agent\\xfe`) && strings.Contains(string(text), `agent\\xff`)
	})
}
