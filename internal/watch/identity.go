package watch

import "github.com/nixl-otel/nixl-otel/internal/identity"

// InstanceID is the service.instance.id of an agent, see [identity.InstanceID].
func InstanceID(host, dir, name string) string { return identity.InstanceID(host, dir, name) }

// InstanceID is that of the agent, which is reckoned once for a host.
func (v *View) InstanceID(host string) string {
	if a := v.Agent; a.instance == "" || a.host != host {
		a.host, a.instance = host, InstanceID(host, a.Dir, a.Name)
	}
	return v.instance
}
