package modules

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/ringtest"
)

const (
	root     = "github.com/nixl-otel/nixl-otel"
	receiver = root + "/receiver/nixlshmreceiver"
)

// heavy are the modules that only other modules of the project need. gonum
// itself is not among them, because gRPC requires it.
var heavy = []string{
	"go.opentelemetry.io/collector", "github.com/open-telemetry/opentelemetry-collector-contrib", "go.uber.org/zap",
	"charm.land/", "github.com/charmbracelet/", "github.com/spf13/", "gonum.org/v1/plot",
	"k8s.io/", "sigs.k8s.io/", "github.com/prometheus/", "github.com/NVIDIA/",
}

// A program that imports a package of the root module builds without a C
// compiler, and neither its module graph nor its go.sum has a heavy module.
func TestLibraryBringsNoHeavyModule(t *testing.T) {
	t.Parallel()
	install := readmeCommand(t)
	for _, pkg := range libraries(t) {
		t.Run(strings.TrimPrefix(pkg, root+"/"), func(t *testing.T) {
			t.Parallel()
			dir := program(t, pkg)
			run(t, dir, install...)
			run(t, dir, "go", "build", ".")
			run(t, dir, "go", "mod", "tidy") // what the program is published with
			reject(t, "the module graph", run(t, dir, "go", "list", "-m", "all"))
			sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
			if err != nil && !os.IsNotExist(err) { // semconv has no dependencies
				t.Fatal(err)
			}
			reject(t, "go.sum", string(sums))
		})
	}
}

// The receiver does bring the Collector, so the test above can fail.
func TestReceiverBringsTheCollector(t *testing.T) {
	t.Parallel()
	dir, top := program(t, receiver), ringtest.Root(t)
	run(t, dir, "go", "mod", "edit", "-require="+receiver+"@v0.0.0", "-require="+root+"@v0.0.0",
		"-replace="+receiver+"="+filepath.Join(top, "receiver", "nixlshmreceiver"), "-replace="+root+"="+top)
	run(t, dir, "go", "build", ".")
	if len(heavyLines(run(t, dir, "go", "list", "-m", "all"))) == 0 {
		t.Error("the module graph has no heavy module")
	}
}

// libraries returns the packages of the root module that other programs import.
func libraries(t *testing.T) (pkgs []string) {
	t.Helper()
	out := run(t, ringtest.Root(t), "go", "list", "./bridge/...", "./ringbuf", "./semconv")
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

// readmeCommand returns the command of README.md that adds a clone to the
// go.mod of a program, for the clone that the test runs in.
func readmeCommand(t *testing.T) []string {
	t.Helper()
	const clone = "-replace=" + root + "=../nixl-otel"
	top := ringtest.Root(t)
	text, err := os.ReadFile(filepath.Join(top, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if command, found := strings.CutSuffix(strings.TrimSpace(line), clone); found {
			return append(strings.Fields(command), "-replace="+root+"="+top)
		}
	}
	t.Fatalf("README.md has no command that ends in %s", clone)
	return nil
}

// program makes an empty module that imports a package, and returns its directory.
func program(t *testing.T, pkg string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module example.com/user\n\ngo 1.25.0\n",
		"user.go": "package user\n\nimport _ \"" + pkg + "\"\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// run runs a command and returns its output. The go command uses the network
// only for what the module cache doesn't have.
func run(t *testing.T, dir string, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOSUMDB=off", "GOWORK=off", "CGO_ENABLED=0")
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, problems.String())
	}
	return string(out)
}

// reject fails the test for each line that names a heavy module.
func reject(t *testing.T, where, text string) {
	t.Helper()
	for _, line := range heavyLines(text) {
		t.Errorf("%s has %s", where, line)
	}
}

// heavyLines returns the lines that begin with the path of a heavy module.
func heavyLines(text string) (lines []string) {
	for line := range strings.Lines(text) {
		for _, module := range heavy {
			if strings.HasPrefix(line, module) {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
	}
	return lines
}
