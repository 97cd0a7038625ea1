// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package hang

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain checks for leaked goroutines, except in a child process, where they are expected.
func TestMain(m *testing.M) {
	if os.Getenv(mountVariable) != "" {
		os.Exit(m.Run())
	}
	goleak.VerifyTestMain(m)
}
