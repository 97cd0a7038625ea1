// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package rings

import (
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/identity"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// labels creates the attribute sets of data points and caches them, because creating a
// set takes longer than the rest of the work for a point.
type labels struct {
	instance bool // add service.instance.id to points
	hostname string
	agents   map[string]*attributes // by path
}

// attributes holds the attribute sets of one agent's points.
type attributes struct {
	agent []attribute.KeyValue
	sets  map[pair]attribute.Set
	seen  bool // since the last sweep
}

// pair holds up to two attributes of a point in addition to the agent's.
type pair [2]attribute.KeyValue

func (l *labels) of(id drain.Agent) *attributes {
	a := l.agents[id.ID]
	if a == nil {
		a = &attributes{
			agent: []attribute.KeyValue{attribute.String(semconv.AgentName, valid(id.Name))},
			sets:  make(map[pair]attribute.Set),
		}
		if l.instance {
			instance := identity.InstanceID(l.hostname, id.ID)
			a.agent = append(a.agent, attribute.String(semconv.ServiceInstanceID, instance))
		}
		if l.agents == nil {
			l.agents = make(map[string]*attributes)
		}
		l.agents[id.ID] = a
	}
	a.seen = true
	return a
}

// sweep removes the agents without points since the last sweep.
func (l *labels) sweep() {
	for id, a := range l.agents {
		if !a.seen {
			delete(l.agents, id)
		}
		a.seen = false
	}
}

func (a *attributes) set(more ...attribute.KeyValue) attribute.Set {
	var key pair
	copy(key[:], more)
	s, ok := a.sets[key]
	if !ok {
		s = attribute.NewSet(append(slices.Clip(a.agent), more...)...)
		a.sets[key] = s
	}
	return s
}

// valid makes a name valid UTF-8. Exporters reject the whole batch if one string
// isn't.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
