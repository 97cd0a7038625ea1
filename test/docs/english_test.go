// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
)

func TestCheckOfEnglishFindsPhrases(t *testing.T) {
	t.Parallel()
	const phrase = "a" + "new" // the check also reads this file
	for _, c := range []struct{ name, text, want string }{
		{"phrase", "A file.\nThe agent starts " + phrase + ".\n", ":2:The agent starts " + phrase + ".\n    use "},
		{"in capitals", strings.ToUpper(phrase) + "\n", ":1:"},
		{"part of a word", "Man" + phrase + "\n", ""},
		{"no phrase", "The agent restarts.\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "file.md")
			must.OK(t, os.WriteFile(file, []byte(c.text), 0o600))
			out, err := exec.CommandContext(t.Context(), filepath.Join(ringtest.Root(t), "scripts/check-english.sh"), file).CombinedOutput()
			if found := err != nil; found != (c.want != "") || !strings.Contains(string(out), c.want) {
				t.Errorf("error %v, output %q, want %q", err, out, c.want)
			}
		})
	}
}
