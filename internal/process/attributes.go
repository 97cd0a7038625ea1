// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// Limits of the attributes of a process: their number, the bytes of a key or a value, and those of
// all keys and values. Each attribute is exported with every collection.
const (
	MaxAttributes     = 64
	MaxAttribute      = 256
	MaxAttributeBytes = 4 << 10
)

// prometheusLabels are labels that have a meaning for Prometheus.
var prometheusLabels = []string{"le", "quantile", "job", "instance"}

// Labelable reports whether Prometheus can carry an attribute as a label.
func Labelable(key string) bool {
	l := Label(key)
	return l != "" && !slices.Contains(prometheusLabels, l)
}

// IsOwn reports whether an attribute has the label of one that the receiver sets itself: those of
// the catalog, of NIXL's own Prometheus exporter, and of the scope.
func IsOwn(key string) bool {
	l := Label(key)
	return ownLabels()[l] || strings.HasPrefix(l, "otel_scope_")
}

var ownLabels = sync.OnceValue(func() map[string]bool {
	own := map[string]bool{"hostname": true, "agent_name": true, "pid": true, "agent_instance": true, "local_rank": true, "status": true}
	for _, list := range [][]semconv.Attribute{semconv.ResourceAttributes(), semconv.NIXLAttributes(), semconv.SharedAttributes()} {
		for _, a := range list {
			own[Label(a.Key)] = true
		}
	}
	return own
})

// attributes returns the attributes in the values of OTEL_RESOURCE_ATTRIBUTES and
// OTEL_SERVICE_NAME, within the limits. It skips blank values, invalid pairs, and keys that [Config.allows]
// rejects. Of keys that are equal on a Prometheus page, it uses the last, as SDKs do.
func (c Config) attributes(list, service string) map[string]string {
	set, labels, used := make(map[string]string), make(map[string]bool), 0
	add := func(key, value string) {
		size, l := len(key)+len(value), Label(key)
		if strings.TrimSpace(value) != "" && isValid(key) && isValid(value) && !labels[l] && len(set) < MaxAttributes && used+size <= MaxAttributeBytes {
			set[key], labels[l] = value, true
			used += size
		}
	}
	add(semconv.ServiceName, service) // it takes precedence
	for _, pair := range slices.Backward(strings.Split(list, ",")) {
		key, value, ok := strings.Cut(pair, "=")
		key, err1 := url.PathUnescape(strings.TrimSpace(key))
		value, err2 := url.PathUnescape(strings.TrimSpace(value))
		if ok && err1 == nil && err2 == nil && c.allows(key) {
			add(key, value)
		}
	}
	return set
}

// allows reports whether a process may set an attribute. It may not set attributes that
// identify the process, its container, its pod, its host or the source of its metrics, even
// if these aren't known otherwise: the k8s_attributes processor doesn't overwrite existing
// attributes. It may not set an attribute that would be a second label of the same name on
// a Prometheus page either, because Prometheus rejects the whole page.
func (c Config) allows(key string) bool {
	listed := false
	for _, p := range c.Attributes {
		matches, err := path.Match(p, key)
		listed = listed || matches && err == nil
	}
	if !listed || key == semconv.ServiceName {
		return listed
	}
	l := Label(key)
	reserved := slices.ContainsFunc(c.Reserved, func(other string) bool { return Label(other) == l })
	return Labelable(key) && !IsOwn(key) && !reserved && !strings.HasPrefix(l, "k8s_") && l != "host_id"
}

// Label returns the label that an attribute becomes on a Prometheus page, or "" if the key
// doesn't begin with a letter. Prometheus reserves labels that begin with two underscores.
// Exporters convert keys in different ways; Label is the same for all keys that one of
// them converts to the same label.
func Label(key string) string {
	var b strings.Builder
	for _, c := range []byte(key) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		switch {
		case letter, b.Len() > 0 && '0' <= c && c <= '9':
			b.WriteByte(c)
		case b.Len() == 0:
			return ""
		case !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
	}
	return b.String()
}

func isValid(s string) bool { return len(s) <= MaxAttribute && utf8.ValidString(s) }
