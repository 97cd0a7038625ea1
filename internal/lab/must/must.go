// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package must stops tests at unexpected errors.
package must

import "testing"

// OK stops the test if there is an error.
func OK(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
