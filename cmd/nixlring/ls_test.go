// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/process"
)

// In the Collector's pod, no ring is in the default directory. Whoever names a directory doesn't look for other agents.
func TestLsInNoDirectorySaysHowToFindAgents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, tt := range map[string]struct {
		env  map[string]string
		args []string
		hint bool
	}{
		"no directory": {nil, nil, true},
		"a variable":   {map[string]string{process.EnvDir: dir}, nil, false},
		"an argument":  {nil, []string{dir}, false},
	} {
		r := runWith(t.Context(), world{now: time.Now, env: lookup(tt.env), dir: dir}, append([]string{"ls"}, tt.args...)...)
		if hint := strings.Contains(r.err, "nixlring top\n"); r.code != exitOK || !strings.HasPrefix(r.err, "no ring in "+dir+"\n") || hint != tt.hint {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
