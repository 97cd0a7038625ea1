// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"
)

// A server rejects a request that is too large, and with it the data of all agents. The example for the
// OpenTelemetry Operator has the configuration of the Helm chart.
func TestEveryOTLPExporterLimitsTheBytesOfRequests(t *testing.T) {
	const most = 4 << 20 // a gRPC server's default
	checked := 0
	for _, pattern := range []string{"collector/*.yaml", "collector/scale/*.yaml", "kubernetes/opentelemetrycollector.yaml"} {
		files, err := filepath.Glob("../../examples/" + pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%d files match %s, error %v", len(files), pattern, err)
		}
		for _, file := range files {
			config, _ := readYAML(t, file).(map[string]any)
			if spec, ok := config["spec"].(map[string]any); ok {
				config, _ = spec["config"].(map[string]any)
			}
			exporters, _ := config["exporters"].(map[string]any)
			for id, value := range maps.All(exporters) {
				exporter, _ := value.(map[string]any)
				if protocol, ok := exporter["protocol"].(map[string]any); ok { // load balancing
					exporter, _ = protocol["otlp"].(map[string]any)
				} else if !strings.HasPrefix(id, "otlp") {
					continue
				}
				checked++
				queue, _ := exporter["sending_queue"].(map[string]any)
				batch, _ := queue["batch"].(map[string]any)
				if size, ok := batch["max_size"].(int); batch["sizer"] != "bytes" || !ok || size > most {
					t.Errorf("%s: exporter %s has the batches %v, want a limit of bytes below %d", file, id, batch, most)
				}
			}
		}
	}
	if checked < 8 {
		t.Errorf("only %d exporters were found", checked)
	}
}
