// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package identity determines the service.instance.id of a NIXL agent. All exporters of an
// agent use it, so that a backend recognizes the same agent.
package identity

import "github.com/google/uuid"

// namespace is OpenTelemetry's namespace for a service.instance.id that is
// derived from other identifying attributes.
var namespace = uuid.MustParse("4d63009a-8d0f-11ee-aad7-4c796ed8e320")

// InstanceID returns the service.instance.id of an agent: a UUIDv5 of its host and of its
// ID there, normally the path of its ring. It stays the same when the agent or its reader
// restarts.
func InstanceID(host, id string) string {
	return uuid.NewSHA1(namespace, []byte(host+"\x00"+id)).String() // no host name contains a NUL
}
