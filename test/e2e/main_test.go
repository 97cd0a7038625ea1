// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"os"
	"testing"

	"github.com/nixl-otel/nixl-otel/test/internal/built"
)

// The programs that only some tests need; empty if they aren't there.
var (
	fullBin         = os.Getenv("OTELCOL_NIXL_FULL")
	victoriaLogsBin = os.Getenv("VICTORIA_LOGS")
)

func TestMain(m *testing.M) { built.Main(m, "e2e") }
