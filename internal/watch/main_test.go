//go:build linux && (amd64 || arm64)

package watch

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain lets the test binary be other processes, too.
func TestMain(m *testing.M) {
	if dir := os.Getenv(agentsVariable); dir != "" {
		beAgents(dir)
		return
	}
	goleak.VerifyTestMain(m)
}
