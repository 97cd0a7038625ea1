// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// unreadable creates two rings whose names differ only in a byte that isn't valid UTF-8, in a directory
// with such a name. Each ring has a transfer that took two seconds.
func unreadable(t *testing.T) (dir string, names [2]string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "dir\xff")
	must.OK(t, os.Mkdir(dir, 0o700))
	names = [2]string{"agent\xfe", "agent\xff"}
	for _, name := range names {
		w, err := ringbuf.Create(filepath.Join(dir, name), ringbuf.V4, 64)
		must.OK(t, err)
		t.Cleanup(func() { _ = w.Close() })
		for typ, value := range map[ringbuf.Type]uint64{ringbuf.TypeErrBackend: 1, 5000: 1} {
			must.OK(t, w.Push(ringbuf.NewEvent(typ, value)))
		}
		for _, e := range []ringbuf.Event{
			ringbuf.NewEvent(ringbuf.TypeXferPostTime, 10), ringbuf.NewEvent(ringbuf.TypeXferTime, 2_000_000),
			ringbuf.NewEvent(ringbuf.TypeTxBytes, 4096), ringbuf.NewEvent(ringbuf.TypeTxRequests, 1),
		} {
			must.OK(t, w.Push(e))
		}
	}
	return dir, names
}

// Whatever the names of files, a command succeeds or reports an error. Two names are two agents.
func TestNamesThatAreNotValidUTF8AreShownByAllCommands(t *testing.T) {
	dir, names := unreadable(t)
	first := filepath.Join(dir, names[0])
	record := filepath.Join(dir, "recording\xff.jsonl.zst")
	session := filepath.Join(dir, "session\xff")
	for _, tt := range []struct {
		code int
		args []string
		want []string // in standard output
	}{
		{exitOK, []string{"ls", dir}, []string{`agent\xfe`, `agent\xff`}},
		{exitOK, []string{"ls", dir, "-o", "json"}, []string{`agent\\xfe`, `agent\\xff`}},
		{exitOK, []string{"read", first, filepath.Join(dir, names[1])}, []string{`agent\xfe`, `agent\xff`}},
		{exitOK, []string{"read", first, filepath.Join(dir, names[1]), "-o", "json"}, []string{`agent\\xfe`, `agent\\xff`}},
		{exitOK, []string{"inspect", first}, []string{`agent\xfe`}},
		{exitOK, []string{"inspect", first, "-o", "json"}, []string{`agent\\xfe`}},
		{exitOK, []string{"top", dir, "--once", "--window", "50ms"}, []string{`agent\xfe`, `agent\xff`}},
		{exitOK, []string{"top", dir, "--once", "--window", "50ms", "-o", "json"}, []string{`agent\\xfe`, `agent\\xff`}},
		{exitError, []string{"why", dir, "--for", "100ms"}, []string{`agent\xfe`}},
		{exitError, []string{"why", dir, "--for", "100ms", "-o", "json"}, []string{`agent\\xfe`, `agent\\xff`}},
		{exitOK, []string{"slow", dir, "--duration", "50ms"}, []string{`agent\xfe`, `agent\xff`}},
		{exitOK, []string{"slow", dir, "--duration", "50ms", "-o", "json"}, []string{`agent\\xfe`, `agent\\xff`}},
		{exitOK, []string{"record", record, dir, "--duration", "50ms"}, nil},
		{exitOK, []string{"top", record, "--once"}, []string{`agent\xfe`, `agent\xff`}},
		{exitNoRing, []string{"why", record}, nil},
		{exitOK, []string{"replay", record, filepath.Join(dir, "replayed\xff"), "--speed", "100"}, nil},
		{exitOK, []string{"ls", filepath.Join(dir, "replayed\xff")}, []string{`agent\\xfe`, `agent\\xff`}},
		{exitOK, []string{"simulate", filepath.Join(dir, "simulated\xff"), "--agents", "1", "--duration", "50ms"}, nil},
		{exitOK, []string{"simulate", filepath.Join(dir, "simulated\xff"), "--name", "sim\xff", "--duration", "50ms"}, nil},
		{exitError, []string{"session", "analyze", session}, nil},
		{exitError, []string{"session", "recover", session}, nil},
		{exitError, []string{"ls", filepath.Join(dir, "missing\xff")}, nil},
		{exitError, []string{"read", filepath.Join(dir, "missing\xff")}, nil},
		{exitError, []string{"top", first, "--once"}, nil},
		{exitError, []string{"why", first}, nil},
		{exitError, []string{"slow", first}, nil},
		{exitError, []string{"record", filepath.Join(dir, "missing\xff", "x"), dir}, nil},
		{exitError, []string{"replay", first, dir}, nil},
	} {
		for _, made := range []string{"replayed\xff", "simulated\xff"} {
			must.OK(t, os.MkdirAll(filepath.Join(dir, made), 0o700))
		}
		r := nixlring(t.Context(), nil, tt.args...)
		if r.code != tt.code {
			t.Errorf("%q: exit code %d, want %d: %s", tt.args, r.code, tt.code, r.err)
		}
		for _, want := range tt.want {
			if !strings.Contains(r.out, want) {
				t.Errorf("%q: %q isn't in:\n%s", tt.args, want, r.out)
			}
		}
	}
}

// The name of a file must not control the terminal of an operator.
func TestErrorsShowControlCharactersAsText(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(dir, "a\x1b[31m"), nil, 0o600))
	r := nixlring(t.Context(), nil, "read", filepath.Join(dir, "a\x1b[31m"))
	if diff := cmp.Diff("nixlring: open ring "+dir+`/a\x1b[31m: ring not ready: the file is empty, so an agent is creating it, or it is not a NIXL telemetry ring`+"\n", r.err); diff != "" {
		t.Error(diff)
	}
}

func TestPageShowsAgentsWhoseNamesAreNotValidUTF8(t *testing.T) {
	dir, _ := unreadable(t)
	address, _ := serve(t, dir, "--listen", "127.0.0.1:0")
	must.EventuallyTrue(t, "state with both agents", func() bool {
		_, body := get(t, address+"state.json")
		text, err := io.ReadAll(body)
		must.OK(t, err)
		return strings.Contains(string(text), `agent\\xfe`) && strings.Contains(string(text), `agent\\xff`)
	})
}
