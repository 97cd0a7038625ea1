package modules

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/ringtest"
)

const module = "github.com/nixl-otel/nixl-otel"

// heavy are modules that only the Collector's part of the project needs.
var heavy = []string{"go.opentelemetry.io/collector", "open-telemetry/opentelemetry-collector-contrib", "go.uber.org/zap"}

// A program that imports the library gets nothing of the Collector: neither its
// go.mod nor its go.sum mentions it. And it needs no C compiler.
func TestNoCollector(t *testing.T) {
	for _, pkg := range []string{
		"bridge/ringkernel", "bridge/agent", "bridge/session", "bridge/sink", "bridge/rings", "bridge/otlpmetric",
		"ringbuf", "semconv",
	} {
		t.Run(pkg, func(t *testing.T) {
			t.Parallel()
			user := program(t, pkg)
			if out, err := run(t, user, "build", "."); err != nil {
				t.Fatalf("go build: %v\n%s", err, out)
			}
			check(t, user)
			// What is in go.sum after this is what a program is published with.
			// It takes the tests of what is imported too, which may not be here.
			out, err := run(t, user, "mod", "tidy")
			if err != nil && strings.Contains(out, "GOPROXY=off") {
				t.Logf("go mod tidy needs modules that aren't in the cache:\n%s", out)
				return
			}
			if err != nil {
				t.Fatalf("go mod tidy: %v\n%s", err, out)
			}
			check(t, user)
		})
	}
}

// A program that imports the receiver does get it: the check sees what it is
// to see.
func TestCollectorIsSeen(t *testing.T) {
	user := program(t, "receiver/nixlshmreceiver")
	if out, err := run(t, user, "build", "."); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	if found := mentions(t, filepath.Join(user, "go.sum")); len(found) == 0 {
		t.Error("go.sum doesn't mention the Collector")
	}
}

// program makes a module that imports one package of this one, and returns its
// directory.
func program(t *testing.T, pkg string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": fmt.Sprintf("module example.com/user\n\ngo 1.25.0\n\nrequire %s v0.0.0\n\nreplace %[1]s => %s\n",
			module, ringtest.Root(t)),
		"user.go": fmt.Sprintf("package user\n\nimport _ %q\n", module+"/"+pkg),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// run runs the go command on what the module cache has.
func run(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOSUMDB=off", "GOWORK=off", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func check(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"go.mod", "go.sum"} {
		for _, line := range mentions(t, filepath.Join(dir, name)) {
			t.Errorf("%s has %s", name, line)
		}
	}
}

// mentions are the lines of a file that name a heavy module. A package without
// dependencies has no go.sum.
func mentions(t *testing.T, path string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		for _, m := range heavy {
			if strings.Contains(line, m) {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
	}
	return lines
}
