// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A signal cancels the context of the command.
func TestReplayEndsWithASignal(t *testing.T) {
	file, dir := stragglerFile(t, nil), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(4010*time.Millisecond, cancel)
		r := nixlring(ctx, nil, "replay", file, dir, "--speed", "0.5")
		if r.code != exitOK || !strings.Contains(r.out, ", 2.0 s of the recording; ") {
			t.Errorf("%+v", r)
		}
	})
}
