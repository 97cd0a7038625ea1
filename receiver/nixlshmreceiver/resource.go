// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"cmp"
	"path/filepath"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/identity"
	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver/internal/metadata"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// resources builds the resources of agents.
type resources struct {
	hostname, service string

	mu sync.Mutex
	*metadata.ResourceBuilder
}

func newResources(cfg *Config, attributes metadata.ResourceAttributesConfig, hostname string) *resources {
	return &resources{hostname: valid(hostname), service: cmp.Or(cfg.Resource[semconv.ServiceName], semconv.ServiceNameNIXL), ResourceBuilder: metadata.NewResourceBuilder(attributes)}
}

// forLogs enables the attributes of the process and of its container. Unlike totals, log
// records don't need attributes that stay the same when the agent restarts.
func forLogs(attributes metadata.ResourceAttributesConfig) metadata.ResourceAttributesConfig {
	attributes.ContainerID.Enabled = true
	attributes.ProcessPid.Enabled = true
	attributes.ProcessExecutableName.Enabled = true
	return attributes
}

// of returns the attributes of an agent's resource. It doesn't use the totals.
func (r *resources) of(a *engine.Snapshot) attribute.Set {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.SetServiceName(r.service)
	r.SetServiceInstanceID(identity.InstanceID(r.hostname, a.ID))
	r.SetHostName(r.hostname)
	r.SetNixlAgentName(valid(a.Name))
	r.SetNixlTelemetryLayout(a.LayoutName())
	r.SetNixlTelemetryPath(valid(filepath.Join(a.Dir, a.Name)))
	if a.Store {
		r.SetNixlTelemetryPath(valid(filepath.Join(a.Dir, filepath.Base(a.Path))))
	}
	var others []attribute.KeyValue
	for _, kv := range append(a.Process.ToSlice(), a.Resource.ToSlice()...) {
		switch kv.Key {
		case semconv.ServiceName:
			r.SetServiceName(valid(kv.Value.AsString()))
		case semconv.K8SPodUID:
			r.SetK8sPodUID(kv.Value.AsString())
		case semconv.K8SContainerName:
			r.SetK8sContainerName(kv.Value.AsString())
		case semconv.ContainerID:
			r.SetContainerID(kv.Value.AsString())
			if a.Resource.HasValue(semconv.ContainerID) { // it identifies the agent
				others = append(others, kv)
			}
		case semconv.ProcessPID:
			r.SetProcessPid(kv.Value.AsInt64())
		case semconv.ProcessExecutableName:
			r.SetProcessExecutableName(valid(kv.Value.AsString()))
		case semconv.LocalRank:
			r.SetNixlLocalRank(valid(kv.Value.AsString()))
		default:
			others = append(others, attribute.String(valid(string(kv.Key)), valid(kv.Value.AsString())))
		}
	}
	for key, value := range r.Emit().Attributes().All() {
		if value.Type() == pcommon.ValueTypeInt {
			others = append(others, attribute.Int64(key, value.Int()))
		} else {
			others = append(others, attribute.String(key, value.AsString()))
		}
	}
	return attribute.NewSet(others...) // those of the builder win
}

// putAttributes adds attributes to a resource.
func putAttributes(res pcommon.Resource, set attribute.Set) {
	attributes := res.Attributes()
	attributes.EnsureCapacity(set.Len())
	for list := set.Iter(); list.Next(); {
		if kv := list.Attribute(); kv.Value.Type() == attribute.INT64 {
			attributes.PutInt(string(kv.Key), kv.Value.AsInt64())
		} else {
			attributes.PutStr(string(kv.Key), kv.Value.AsString())
		}
	}
}
