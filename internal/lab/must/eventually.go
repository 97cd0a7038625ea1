// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package must

import (
	"testing"
	"time"
)

// Patience is how long a test waits for something before it gives up. It is far longer than a busy
// machine needs: a passing test never waits this long.
const Patience = time.Minute

// Eventually calls check until it returns "", which means that the condition holds. Use it only for
// what can't be waited for, such as files, pages and /proc.
func Eventually(tb testing.TB, check func() (missing string)) {
	tb.Helper()
	Within(tb, Patience, check)
}

// EventuallyTrue calls isTrue until it returns true.
func EventuallyTrue(tb testing.TB, what string, isTrue func() bool) {
	tb.Helper()
	Eventually(tb, func() string {
		if isTrue() {
			return ""
		}
		return "no " + what
	})
}

// Within is [Eventually] with another limit. The pauses between checks grow to 100 ms, so that
// checks don't slow down what takes seconds.
func Within(tb testing.TB, limit time.Duration, check func() (missing string)) {
	tb.Helper()
	pause := time.Millisecond
	for end := time.Now().Add(limit); ; {
		missing := check()
		if missing == "" {
			return
		}
		if time.Now().After(end) {
			tb.Fatalf("after %v: %s", limit, missing)
		}
		<-time.After(pause)
		pause = min(pause*5/4, 100*time.Millisecond)
	}
}
