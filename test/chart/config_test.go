// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// collector returns the path of the full Collector, which `make validate`
// builds.
func collector(t *testing.T) string {
	t.Helper()
	path := os.Getenv("OTELCOL_NIXL_FULL")
	if path == "" {
		t.Skip("OTELCOL_NIXL_FULL isn't set to a built Collector; `make validate` builds it")
	}
	return path
}

// validate fails the test if the Collector rejects a configuration.
func validate(t *testing.T, config string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	must.OK(t, os.WriteFile(file, []byte(config), 0o600))
	cmd := exec.CommandContext(t.Context(), collector(t), "validate", "--config="+file)
	cmd.Env = []string{"K8S_NODE_NAME=node", "K8S_NAMESPACE_NAME=default", "K8S_POD_NAME=pod", "K8S_POD_UID=uid", "OTLP_HEADER_0=secret"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\nconfiguration:\n%s", err, out, config)
	}
}

func TestCollectorAcceptsEveryModesConfiguration(t *testing.T) {
	t.Parallel()
	collector(t)
	for _, mode := range modes {
		for name, values := range map[string]string{"least": endpoint, "everything": everything} {
			t.Run(mode+" "+name, func(t *testing.T) {
				t.Parallel()
				m := render(t, values, "mode: "+mode)
				validate(t, m.configMap.Data["config.yaml"])
			})
		}
	}
}

// An observer has no positions to store, and the receiver rejects storage.
func TestObserverHasNoStorage(t *testing.T) {
	t.Parallel()
	config := func(mode string) string {
		return render(t, endpoint, "receiver: {mode: "+mode+"}").configMap.Data["config.yaml"]
	}
	const storage = "storage: file_storage\n"
	if strings.Contains(config("observe"), storage) || !strings.Contains(config("consume"), storage) {
		t.Errorf("observe renders\n%s\nconsume renders\n%s", config("observe"), config("consume"))
	}
	validate(t, config("observe"))
}

// The test uses the values in docs/deploy.md that need the full Collector.
func TestCollectorAcceptsDocumentedConfiguration(t *testing.T) {
	t.Parallel()
	collector(t)
	blocks := yamlBlocks(t, "../../docs/deploy.md", "config:\n")
	for _, values := range blocks {
		m := render(t, endpoint, values)
		validate(t, m.configMap.Data["config.yaml"])
	}
}

func TestCollectorAcceptsTheOperatorsResource(t *testing.T) {
	t.Parallel()
	collector(t)
	resource := mustDecode[collectorResource](t, example(t, "kubernetes/opentelemetrycollector.yaml")["OpenTelemetryCollector"])
	validate(t, asYAML(t, resource.Spec.Config))
}
