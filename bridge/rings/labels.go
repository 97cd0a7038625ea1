package rings

import (
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/identity"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// labels makes the attributes of the agents' points and keeps them from one
// collection to the next, as making a set takes longer than all else about a
// point.
type labels struct {
	instance bool // agents of one name are told apart
	hostname string
	agents   map[string]*attributes // by path
}

// attributes are those of one agent's points.
type attributes struct {
	agent []attribute.KeyValue
	sets  map[pair]attribute.Set
	seen  bool // since the last sweep
}

// pair is the attributes of a point beside the agent's: none, one or two.
type pair [2]attribute.KeyValue

func (l *labels) of(id drain.Agent) *attributes {
	a := l.agents[id.Path]
	if a == nil {
		a = &attributes{
			agent: []attribute.KeyValue{attribute.String(semconv.AgentName, valid(id.Name))},
			sets:  make(map[pair]attribute.Set),
		}
		if l.instance {
			instance := identity.InstanceID(l.hostname, id.Dir, id.Name)
			a.agent = append(a.agent, attribute.String(semconv.ServiceInstanceID, instance))
		}
		if l.agents == nil {
			l.agents = make(map[string]*attributes)
		}
		l.agents[id.Path] = a
	}
	a.seen = true
	return a
}

// sweep forgets agents that are gone.
func (l *labels) sweep() {
	for path, a := range l.agents {
		if !a.seen {
			delete(l.agents, path)
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

// valid makes the name of a file fit for OTLP, which refuses a whole request
// for one string that isn't UTF-8.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
