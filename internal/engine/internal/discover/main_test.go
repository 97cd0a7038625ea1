// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the test binary as an agent if agentVariable is set.
func TestMain(m *testing.M) {
	if path := os.Getenv(agentVariable); path != "" {
		if err := runAgent(path); err != nil {
			fmt.Fprintln(os.Stderr, "agent:", err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}
