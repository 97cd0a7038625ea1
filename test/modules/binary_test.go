// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"debug/elf"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
)

// make nixlring must build a static program even where there is a C compiler. The
// size limit finds expensive dependencies.
func TestNixlringIsSmallAndStatic(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("nixlring is static only on Linux")
	}
	const most = 20 << 20 // bytes; net/http takes 3 MiB, and the client of Prometheus 5
	root := ringtest.Root(t)
	path := filepath.Join(t.TempDir(), "nixlring")
	recipe := run(t, root, "make", "--no-print-directory", "--dry-run", "--always-make", "nixlring")
	build := strings.Replace(recipe, filepath.Join(root, "bin/nixlring"), path, 1)
	if build == recipe {
		t.Fatalf("make nixlring doesn't build bin/nixlring:\n%s", recipe)
	}
	run(t, root, "env", "--unset=CGO_ENABLED", "bash", "-ec", build)
	f, err := elf.Open(path)
	must.OK(t, err)
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("nixlring is linked dynamically")
		}
	}
	info, err := os.Stat(path)
	must.OK(t, err)
	if info.Size() > most {
		t.Errorf("nixlring has %d bytes, want at most %d", info.Size(), most)
	}
}
