// Package identity derives the service.instance.id of a NIXL agent. Everything
// that reports an agent uses it, so that a backend sees one agent, whichever
// way its metrics take.
package identity

import (
	"strings"

	"github.com/google/uuid"
)

// namespace is OpenTelemetry's namespace for a service.instance.id that is
// derived from other identifying attributes.
var namespace = uuid.MustParse("4d63009a-8d0f-11ee-aad7-4c796ed8e320")

// InstanceID returns the service.instance.id of an agent: a UUIDv5 of the host
// name, the ring's directory and the agent's name. It stays the same when the
// agent or its reader restarts.
func InstanceID(host, dir, name string) string {
	key := strings.Join([]string{host, dir, name}, "\x00") // none of them can contain a NUL
	return uuid.NewSHA1(namespace, []byte(key)).String()
}
