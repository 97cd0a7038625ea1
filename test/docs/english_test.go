// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
)

func TestCheckOfEnglishFindsPhrases(t *testing.T) {
	t.Parallel()
	const phrase = "a" + "new" // the check also reads this file
	file := filepath.Join(t.TempDir(), "file.md")
	must.OK(t, os.WriteFile(file, []byte("Part of a word: man"+phrase+".\nThe agent starts "+phrase+".\nThe agent starts A"+phrase[1:]+".\n"), 0o600))
	out, err := exec.CommandContext(t.Context(), filepath.Join(ringtest.Root(t), "scripts/check-english.sh"), file).CombinedOutput()
	const use = "\n    use \"again\", or the term: restarts, rewrites, recreates\n"
	want := file + ":2:The agent starts " + phrase + "." + use + file + ":3:The agent starts A" + phrase[1:] + "." + use
	if d := cmp.Diff(want, string(out)); d != "" || err == nil {
		t.Errorf("error %v, output (-want +got):\n%s", err, d)
	}
}
