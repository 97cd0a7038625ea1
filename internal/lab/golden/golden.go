// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package golden compares texts with files, which a flag of the test writes.
package golden

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// Compare compares a text with a file in testdata or, if update is set, writes the file.
func Compare(tb testing.TB, update bool, name, got string) {
	tb.Helper()
	path := filepath.Join("testdata", name)
	if update {
		must.OK(tb, os.MkdirAll("testdata", 0o755))
		must.OK(tb, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	must.OK(tb, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		tb.Errorf("%s (to update it, run go test -update; -want +got):\n%s", path, diff)
	}
}
