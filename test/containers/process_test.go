// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containers

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/process"
)

const enable = "--env=NIXL_TELEMETRY_ENABLE=y"

func TestOpenDirRefusesSymlinksOutOfTheContainer(t *testing.T) {
	a := start(t, spec{pod(1), []string{enable, "--env=NIXL_TELEMETRY_DIR=/rings"}, nil})
	found, err := process.New(process.Config{}).Scan(time.Now(), nil)
	must.OK(t, err)
	i := slices.IndexFunc(found, func(p process.Process) bool { return p.PID == a.pid })
	if i < 0 {
		t.Fatal("the agent wasn't found")
	}
	p := found[i]
	for dir, want := range map[string]error{
		"/magic":               files.ErrNotDir,
		"/proc/1/root/rings":   files.ErrNotDir,
		"/proc/1/cwd":          files.ErrNotDir,
		"/up":                  os.ErrNotExist,
		"/../../../" + "/work": os.ErrNotExist,
		"/agent":               files.ErrNotDir,
		"/dev/null":            files.ErrNotDir,
	} {
		if f, err := process.OpenDir(p, "", dir, "."); !errors.Is(err, want) {
			t.Errorf("%s: %v, %v; want %v", dir, f, err, want)
		}
	}
}
