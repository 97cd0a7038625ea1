// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/nixl-otel/nixl-otel/semconv"
)

const (
	// maxAttributes limits the number of attributes of a process, maxAttribute the bytes
	// of a key or a value, and maxAttributeBytes those of all keys and values. Each
	// attribute is exported with every collection.
	maxAttributes     = 64
	maxAttribute      = 256
	maxAttributeBytes = 4 << 10
)

// filter decides which attributes a process may set in OTEL_RESOURCE_ATTRIBUTES and in its
// process context.
type filter struct {
	patterns []string        // of keys, as in [path.Match]
	reserved map[string]bool // labels of attributes that have another source
}

// prometheusLabels are labels that have a meaning for Prometheus.
var prometheusLabels = []string{"le", "quantile", "job", "instance"}

// Labelable reports whether Prometheus can carry an attribute as a label.
func Labelable(key string) bool {
	l := Label(key)
	return l != "" && !slices.Contains(prometheusLabels, l)
}

// reservedKeys are keys, besides those of the catalog, that a process can't set: the labels
// of NIXL's own Prometheus exporter, and what describes the host.
var reservedKeys = []string{
	"hostname", "agent_name", "pid", "agent_instance", "local_rank", "status",
	"host.id",
}

// reservedPrefixes are prefixes of labels that a process can't set: those of the scope on a
// Prometheus page, and those that the k8s_attributes processor adds, which doesn't overwrite
// existing attributes.
var reservedPrefixes = []string{"otel_scope_", "k8s_"}

func newFilter(patterns, reserved []string) filter {
	f := filter{patterns: patterns, reserved: make(map[string]bool)}
	for _, list := range [][]semconv.Attribute{semconv.ResourceAttributes(), semconv.NIXLAttributes(), semconv.SharedAttributes()} {
		for _, a := range list {
			f.reserved[Label(a.Key)] = true
		}
	}
	for _, list := range [][]string{prometheusLabels, reservedKeys, reserved} {
		for _, key := range list {
			f.reserved[Label(key)] = true
		}
	}
	return f
}

// attributes returns the attributes in the values of OTEL_RESOURCE_ATTRIBUTES and
// OTEL_SERVICE_NAME. It skips invalid pairs, and keys that [filter.allows] rejects. Of keys
// that are equal on a Prometheus page, it uses the first.
func (f filter) attributes(list, service string) map[string]string {
	s := newAttributeSet()
	if service != "" && isValid(service) {
		s.set(semconv.ServiceName, service)
	}
	for pair := range strings.SplitSeq(list, ",") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			continue
		}
		key, err1 := url.PathUnescape(strings.TrimSpace(key))
		value, err2 := url.PathUnescape(strings.TrimSpace(value))
		switch {
		case err1 != nil || err2 != nil || !isValid(key) || !isValid(value):
		case key == semconv.ServiceName && s.attributes[key] != "": // OTEL_SERVICE_NAME takes precedence
		case f.allows(key):
			s.set(key, value)
		}
	}
	return s.attributes
}

// attributeSet holds attributes within the limits, with a key for each label.
type attributeSet struct {
	attributes map[string]string
	keys       map[string]string // by label
	used       int               // bytes
}

func newAttributeSet() *attributeSet {
	return &attributeSet{attributes: make(map[string]string), keys: make(map[string]string)}
}

// set sets an attribute, unless the limits or another key with this label prevent it.
func (s *attributeSet) set(key, value string) {
	size := len(key) + len(value)
	if old, again := s.attributes[key]; again {
		size -= len(key) + len(old)
	} else if s.keys[Label(key)] != "" || len(s.attributes) == maxAttributes {
		return
	}
	if s.used+size <= maxAttributeBytes {
		s.attributes[key], s.keys[Label(key)] = value, key
		s.used += size
	}
}

// merge adds the attributes of b to those of a, which take precedence.
func merge(a, b map[string]string) map[string]string {
	if len(a) == 0 {
		return b
	}
	s := newAttributeSet()
	for _, list := range []map[string]string{a, b} {
		for _, key := range slices.Sorted(maps.Keys(list)) { // the limits always drop the same
			if _, again := s.attributes[key]; !again {
				s.set(key, list[key])
			}
		}
	}
	return s.attributes
}

// allows reports whether a process may set an attribute. It may not set attributes that
// identify the process, its container, its pod, its host or the source of its metrics, even
// if these aren't known otherwise. It may not set an attribute that would be a second label
// of the same name on a Prometheus page either, because Prometheus rejects the whole page.
func (f filter) allows(key string) bool {
	listed := false
	for _, p := range f.patterns {
		matches, err := path.Match(p, key)
		listed = listed || matches && err == nil
	}
	if !listed || key == semconv.ServiceName {
		return listed
	}
	l := Label(key)
	for _, prefix := range reservedPrefixes {
		if strings.HasPrefix(l, prefix) {
			return false
		}
	}
	return l != "" && !f.reserved[l]
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

func isValid(s string) bool { return len(s) <= maxAttribute && utf8.ValidString(s) }
