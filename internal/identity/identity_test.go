package identity_test

import (
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/identity"
)

// Backends join on the id, so it must not change from one release to the next.
func TestInstanceIDIsStable(t *testing.T) {
	const want = "8f798f91-3cf6-50d8-8219-b2a609bd9643"
	if got := identity.InstanceID("host", "/run/nixl", "decode-0"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestInstanceIDDependsOnEachPart(t *testing.T) {
	seen := make(map[string][3]string)
	for _, parts := range [][3]string{
		{"host", "/run/nixl", "a"},
		{"other", "/run/nixl", "a"},
		{"host", "/run", "a"},
		{"host", "/run/nixl", "b"},
		{"host/run", "/nixl", "a"},
	} {
		id := identity.InstanceID(parts[0], parts[1], parts[2])
		if other, ok := seen[id]; ok {
			t.Errorf("%q and %q have the same id", parts, other)
		}
		seen[id] = parts
	}
}
