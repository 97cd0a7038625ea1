// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package identity determines the identity of a NIXL agent: its host and its
// service.instance.id. All exporters of an agent use it, so that a backend recognizes the
// same agent.
package identity

import (
	"fmt"
	"os"
	"strings"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// namespace is OpenTelemetry's namespace for a service.instance.id that is
// derived from other identifying attributes.
var namespace = uuid.MustParse("4d63009a-8d0f-11ee-aad7-4c796ed8e320")

// InstanceID returns the service.instance.id of an agent: a UUIDv5 of its host and of its
// ID there, normally the path of its ring. It stays the same when the agent or its reader
// restarts.
func InstanceID(host, id string) string {
	return uuid.NewSHA1(namespace, []byte(host+"\x00"+id)).String() // no host name contains a NUL
}

// HostName returns the host name of the agents that this program reports: host.name in
// OTEL_RESOURCE_ATTRIBUTES, or else the system's host name. Invalid UTF-8 is replaced, as
// in the receiver, because exporters reject a whole batch that contains it.
func HostName() (string, error) {
	name, _ := resource.Environment().Set().Value(semconv.HostName)
	host := name.AsString()
	if host == "" {
		var err error
		if host, err = os.Hostname(); err != nil {
			return "", fmt.Errorf("determine the host name (set host.name in OTEL_RESOURCE_ATTRIBUTES instead): %w", err)
		}
	}
	return strings.ToValidUTF8(host, "\uFFFD"), nil
}
