// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"os"
	"path/filepath"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/nixl-otel/nixl-otel/internal/identity"
	"github.com/nixl-otel/nixl-otel/internal/nixlenv"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// ResourceAttributes returns the resource attributes that the Collector
// receiver gives an agent with this name and a ring in dir. Give them to a
// MeterProvider that serves this agent alone, together with
// [WithNameInResource]; the agent then looks the same to a backend whether it
// reports by a ring or by OTLP.
//
// An empty dir is NIXL_TELEMETRY_DIR or else /tmp, as in [Ring]. The
// attributes are service.name (OTEL_SERVICE_NAME, or else nixl),
// service.instance.id (a UUIDv5 of host name and the path of its ring), nixl.agent.name
// and host.name (OTEL_RESOURCE_ATTRIBUTES, or else the system's). The id is the
// receiver's if host name and dir are: in a container, set host.name to the
// node's and dir to the path at which the receiver watches.
func ResourceAttributes(name, dir string) ([]attribute.KeyValue, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if dir == "" {
		dir = nixlenv.Env(os.LookupEnv).Dir()
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
		attribute.String(semconv.AgentName, validName(name)),
		attribute.String(semconv.HostName, host),
	}, nil
}
