// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/identity"
)

// Backends join on the ID, so it must not change between releases.
func TestInstanceIDIsStable(t *testing.T) {
	const want = "a5fbb094-e106-5772-a53a-51a92b3df0d0"
	if got := identity.InstanceID("host", "/run/nixl/decode-0"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestInstanceIDDependsOnEachPart(t *testing.T) {
	seen := make(map[string][2]string)
	for _, parts := range [][2]string{
		{"host", "/run/nixl/a"},
		{"other", "/run/nixl/a"},
		{"host", "/run/a"},
		{"host", "/run/nixl/b"},
		{"host/run", "/nixl/a"},
	} {
		id := identity.InstanceID(parts[0], parts[1])
		if other, ok := seen[id]; ok {
			t.Errorf("%q and %q have the same id", parts, other)
		}
		seen[id] = parts
	}
}
