// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
)

const (
	root = "github.com/nixl-otel/nixl-otel"
)

// otlp are the modules that exporters need.
var otlp = []string{
	"go.opentelemetry.io/otel/exporters/", "go.opentelemetry.io/proto/", "google.golang.org/",
	"github.com/grpc-ecosystem/", "golang.org/x/net ",
}

// heavy are the modules that only the project's other modules need.
var heavy = []string{
	"go.opentelemetry.io/collector", "github.com/open-telemetry/opentelemetry-collector-contrib", "go.uber.org/zap",
	"charm.land/", "github.com/charmbracelet/", "github.com/spf13/", "gonum.org/v1/plot",
	"k8s.io/", "sigs.k8s.io/", "github.com/prometheus/", "github.com/NVIDIA/",
}

// A program that imports a package of the root module builds without a C
// compiler. Its module graph and its go.sum have no module that only the
// project's other modules need.
func TestLibraryBringsNoHeavyModule(t *testing.T) {
	t.Parallel()
	for _, pkg := range libraries(t) {
		t.Run(strings.TrimPrefix(pkg, root+"/"), func(t *testing.T) {
			t.Parallel()
			dir := program(t, pkg)
			install(t, dir)
			run(t, dir, "go", "build", ".")
			unwanted := slices.Concat(otlp, heavy)
			reject(t, "the module graph", run(t, dir, "go", "list", "-m", "all"), unwanted)
			sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
			if err != nil && !os.IsNotExist(err) { // semconv has no dependencies
				t.Fatal(err)
			}
			reject(t, "go.sum", string(sums), unwanted)
		})
	}
}

// libraries returns the packages of the root module that other programs import.
func libraries(t *testing.T) (pkgs []string) {
	t.Helper()
	out := run(t, ringtest.Root(t), "go", "list", "-f", "{{if .GoFiles}}{{.ImportPath}}{{end}}", "./bridge/...", "./ringbuf", "./semconv")
	for pkg := range strings.FieldsSeq(out) {
		if !strings.Contains(pkg, "/internal/") {
			pkgs = append(pkgs, pkg)
		}
	}
	if len(pkgs) < 3 {
		t.Fatalf("the root module has only the packages %v", pkgs)
	}
	return pkgs
}

// program creates a module that only imports packages, next to a link to this
// repository, and returns the module's directory.
func program(t *testing.T, imports ...string) string {
	t.Helper()
	parent := t.TempDir()
	must.OK(t, os.Symlink(ringtest.Root(t), filepath.Join(parent, "nixl-otel")))
	dir := filepath.Join(parent, "user")
	write(t, dir, "go.mod", "module example.com/user\n\ngo 1.26.0\n")
	write(t, dir, "user.go", "package user\n\nimport (\n\t_ \""+strings.Join(imports, "\"\n\t_ \"")+"\"\n)\n")
	return dir
}

// install runs the commands in bridge/README.md that add the project's packages to a
// program.
func install(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(ringtest.Root(t), "bridge", "README.md"))
	must.OK(t, err)
	for block := range strings.SplitSeq(string(text), "```sh\n") {
		if commands, _, _ := strings.Cut(block, "```"); strings.HasSuffix(commands, "\ngo mod tidy\n") {
			run(t, dir, "sh", "-ec", commands)
			return
		}
	}
	t.Fatal("bridge/README.md has no sh block that ends with go mod tidy")
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	must.OK(t, os.MkdirAll(dir, 0o700))
	must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
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

// reject fails the test for each line that begins with one of the prefixes.
func reject(t *testing.T, where, text string, prefixes []string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(line, p) }) {
			t.Errorf("%s has %s", where, strings.TrimSpace(line))
		}
	}
}
