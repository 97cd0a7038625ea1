// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"testing"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/semconv"
)

func TestKnownContainerTakesPrecedence(t *testing.T) {
	r := Resource{semconv.K8SContainerName: "sidecar's neighbor", "team": "a"}
	known := drain.Agent{Resource: attribute.NewSet(attribute.String(semconv.K8SContainerName, "worker"))}
	for want, a := range map[string]drain.Agent{"sidecar's neighbor": {}, "worker": known} {
		got := r.describe(a).Resource
		if name, _ := got.Value(semconv.K8SContainerName); name.AsString() != want || !got.HasValue("team") {
			t.Errorf("the resource is %s, want the container %s", got.Encoded(attribute.DefaultEncoder()), want)
		}
	}
}
