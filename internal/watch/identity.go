package watch

import (
	"strings"

	"github.com/google/uuid"
)

// instanceNamespace is OpenTelemetry's namespace for a service.instance.id
// that is made of what the instance is known by.
var instanceNamespace = uuid.MustParse("4d63009a-8d0f-11ee-aad7-4c796ed8e320")

// InstanceID is the service.instance.id of an agent: a UUID of version 5, the
// same over restarts of the agent and of its reader, and another for each
// host, directory and name.
func InstanceID(host, dir, name string) string {
	key := strings.Join([]string{host, dir, name}, "\x00") // none of them can hold a NUL
	return uuid.NewSHA1(instanceNamespace, []byte(key)).String()
}

// InstanceID is that of the agent, which is reckoned once for a host.
func (v *View) InstanceID(host string) string {
	if a := v.Agent; a.instance == "" || a.host != host {
		a.host, a.instance = host, InstanceID(host, a.Dir, a.Name)
	}
	return v.instance
}
