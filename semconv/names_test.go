// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package semconv_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// OpenTelemetry's policies forbid that an attribute is also the namespace of another
// attribute, and the same for metrics and for events. An attribute and a metric may
// share a name.
func TestNamesAreNotNamespacesOfOthers(t *testing.T) {
	kinds := make(map[string][]string)
	for _, a := range slices.Concat(semconv.ResourceAttributes(), semconv.NIXLAttributes(), semconv.RingKernelAttributes(),
		semconv.SplitInferenceAttributes(), semconv.SharedAttributes()) {
		kinds["attribute"] = append(kinds["attribute"], a.Key)
	}
	for _, m := range slices.Concat(semconv.NIXL(), semconv.RingKernel(), semconv.SplitInference()) {
		kinds["metric"] = append(kinds["metric"], m.Name)
	}
	for _, e := range semconv.NIXLEvents() {
		kinds["event"] = append(kinds["event"], e.Name)
	}
	for kind, names := range kinds {
		for _, name := range names {
			for _, other := range names {
				if strings.HasPrefix(other, name+".") {
					t.Errorf("%s %s is also the namespace of %s", kind, name, other)
				}
			}
		}
	}
}
