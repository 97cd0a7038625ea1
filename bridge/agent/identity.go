// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"os"
	"path/filepath"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/nixl-otel/nixl-otel/bridge/internal/text"
	"github.com/nixl-otel/nixl-otel/internal/identity"
	"github.com/nixl-otel/nixl-otel/internal/process"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// ResourceAttributes returns the resource attributes that the Collector receiver
// reports for an agent with this name and a ring in dir. Use them for a
// MeterProvider that serves only this agent, together with [WithNameInResource];
// a backend then can't distinguish an agent that reports over OTLP from one that
// reports through a ring.
//
// If dir is empty, it defaults to NIXL_TELEMETRY_DIR, or else to /tmp, as in
// [WithRing]. The attributes are:
//
//   - service.name: from OTEL_SERVICE_NAME, or else nixl
//   - service.instance.id: a UUIDv5 of the host name and the ring's path
//   - nixl.agent.name: the name
//   - host.name: from OTEL_RESOURCE_ATTRIBUTES, or else the system's host name
//
// The instance ID equals the receiver's if host name and dir do. In a container,
// set host.name to the node's name and dir to the path that the receiver watches.
func ResourceAttributes(name, dir string) ([]attribute.KeyValue, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if dir == "" {
		dir = process.Env(os.LookupEnv).Dir()
	}
	host, err := identity.HostName()
	if err != nil {
		return nil, fmt.Errorf("resource of agent %s: %w", name, err)
	}
	service, ok := resource.Environment().Set().Value(semconv.ServiceName)
	if !ok {
		service = attribute.StringValue(semconv.ServiceNameNIXL)
	}
	return []attribute.KeyValue{
		{Key: semconv.ServiceName, Value: service},
		attribute.String(semconv.ServiceInstanceID, identity.InstanceID(host, filepath.Join(dir, name))),
		attribute.String(semconv.AgentName, text.Valid(name)),
		attribute.String(semconv.HostName, host),
	}, nil
}
