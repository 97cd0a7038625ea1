// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
)

// unwanted are the modules that exporters need, and those that only the project's other modules need.
var unwanted = []string{
	"go.opentelemetry.io/otel/exporters/", "go.opentelemetry.io/proto/", "google.golang.org/",
	"github.com/grpc-ecosystem/", "golang.org/x/net ",
	"go.opentelemetry.io/collector", "github.com/open-telemetry/opentelemetry-collector-contrib", "go.uber.org/zap",
	"charm.land/", "github.com/charmbracelet/", "github.com/spf13/", "gonum.org/v1/plot",
	"k8s.io/", "sigs.k8s.io/", "github.com/prometheus/", "github.com/NVIDIA/",
}

// A program that imports the packages of the root module builds without a C compiler, and brings no unwanted
// module into its module graph and its go.sum.
func TestLibraryBringsNoHeavyModule(t *testing.T) {
	t.Parallel()
	root := ringtest.Root(t)
	var imports strings.Builder
	for pkg := range strings.FieldsSeq(run(t, root, "go", "list", "-f", "{{if .GoFiles}}{{.ImportPath}}{{end}}", "./bridge/...", "./ringbuf", "./semconv")) {
		if !strings.Contains(pkg, "/internal/") {
			fmt.Fprintf(&imports, "import _ %q\n", pkg)
		}
	}
	dir := module(t, "user.go", "package user\n\n"+imports.String())
	run(t, dir, "go", "build", ".")
	sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	must.OK(t, err)
	modules := run(t, dir, "go", "list", "-m", "all")
	if !strings.Contains(modules, "go.opentelemetry.io/otel/sdk/metric ") {
		t.Errorf("the packages aren't imported: %s", modules)
	}
	for line := range strings.Lines(modules + string(sums)) {
		if slices.ContainsFunc(unwanted, func(p string) bool { return strings.HasPrefix(line, p) }) {
			t.Errorf("a program that imports the packages depends on %s", line)
		}
	}
}

// The program in docs/install.md is what a reader copies first.
func TestProgramInTheDocumentationExports(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(ringtest.Root(t), "docs", "install.md"))
	must.OK(t, err)
	_, program, _ := strings.Cut(string(text), "```go\n")
	program, _, _ = strings.Cut(program, "```")
	dir := module(t, "main.go", program)
	cmd := exec.CommandContext(t.Context(), "./user")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "OTEL_METRICS_EXPORTER=console")
	run(t, dir, "go", "build", "-o", "user", ".")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"nixl.transfer.requests"`) {
		t.Errorf("%v\n%s", err, out)
	}
}

// module returns the directory of a module outside of this repository that requires it.
func module(t *testing.T, name, source string) string {
	t.Helper()
	root, dir := ringtest.Root(t), t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/user\n\ngo 1.26.0\n"), 0o600))
	must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(source), 0o600))
	run(t, dir, "go", "mod", "edit", "-replace=github.com/nixl-otel/nixl-otel="+root)
	run(t, dir, "go", "mod", "tidy")
	return dir
}

// run runs a command and returns its output. The go command uses the network
// only for modules that aren't in the module cache. With -trimpath, it reuses the
// compiled packages of the Collector.
func run(t *testing.T, dir string, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath", "GOSUMDB=off", "GOWORK=off", "CGO_ENABLED=0")
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, problems.String())
	}
	return string(out)
}
