// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"net/url"
	"strings"
	"unicode/utf8"
)

const (
	// maxAttributes limits the number of attributes of a process. maxAttribute limits
	// the bytes of a name or a value.
	maxAttributes = 64
	maxAttribute  = 1024
)

// reserved are the resource attributes that a process can't set, because they come from
// the kernel or the Collector.
var reserved = map[string]bool{
	"container.id":            true,
	"host.id":                 true,
	"host.name":               true,
	"k8s.pod.uid":             true,
	"process.executable.name": true,
	"process.pid":             true,
	"service.instance.id":     true,
}

// Attributes returns the resource attributes that the process sets in
// OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME. It skips attributes that identify
// the process, its container, its pod, its host or the source of its metrics, even
// if these aren't known otherwise, so that a process can't impersonate another one.
// It also skips invalid pairs.
func (p Process) Attributes() map[string]string {
	attributes := make(map[string]string)
	for pair := range strings.SplitSeq(p.Env[resourceAttributes], ",") {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			continue
		}
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		name, err1 := url.PathUnescape(name)
		value, err2 := url.PathUnescape(value)
		if err1 == nil && err2 == nil && !reserved[name] && valid(name, value) {
			attributes[name] = value
		}
		if len(attributes) == maxAttributes {
			break
		}
	}
	if name := p.Env[serviceName]; name != "" && valid(serviceName, name) {
		attributes["service.name"] = name
	}
	return attributes
}

func valid(name, value string) bool {
	return name != "" && len(name) <= maxAttribute && len(value) <= maxAttribute &&
		utf8.ValidString(name) && utf8.ValidString(value)
}
