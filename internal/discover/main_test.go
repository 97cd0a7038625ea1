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

// TestMain lets the test binary be an agent, too.
func TestMain(m *testing.M) {
	if path := os.Getenv(agentVariable); path != "" {
		if err := beAgent(path); err != nil {
			fmt.Fprintln(os.Stderr, "agent:", err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}
