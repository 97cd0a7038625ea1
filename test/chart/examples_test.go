// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const examples = "../../examples/"

// dynamoGraph is the part of Dynamo's v1beta1 API that the example uses.
type dynamoGraph struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		BackendFramework string `json:"backendFramework"`
		Components       []struct {
			Name        string                 `json:"name"`
			Type        string                 `json:"type"`
			Replicas    *int32                 `json:"replicas"`
			PodTemplate corev1.PodTemplateSpec `json:"podTemplate"`
		} `json:"components"`
	} `json:"spec"`
}

// collectorResource is the part of the OpenTelemetry Operator's v1beta1 API that
// the example uses.
type collectorResource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Mode                    string                         `json:"mode"`
		Image                   string                         `json:"image"`
		HostPID                 bool                           `json:"hostPID"`
		ServiceAccount          string                         `json:"serviceAccount"`
		PodSecurityContext      *corev1.PodSecurityContext     `json:"podSecurityContext"`
		SecurityContext         *corev1.SecurityContext        `json:"securityContext"`
		Tolerations             []corev1.Toleration            `json:"tolerations"`
		Env                     []corev1.EnvVar                `json:"env"`
		Resources               corev1.ResourceRequirements    `json:"resources"`
		Volumes                 []corev1.Volume                `json:"volumes"`
		VolumeMounts            []corev1.VolumeMount           `json:"volumeMounts"`
		DaemonSetUpdateStrategy appsv1.DaemonSetUpdateStrategy `json:"daemonSetUpdateStrategy"`
		Config                  map[string]any                 `json:"config"`
	} `json:"spec"`
}

// example returns the documents of a file, by kind.
func example(t *testing.T, name string) map[string][]byte {
	t.Helper()
	file, err := os.Open(examples + name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	list, err := documents(file)
	if err != nil {
		t.Fatal(err)
	}
	byKind := make(map[string][]byte)
	for _, text := range list {
		var meta metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(text), &meta); err != nil {
			t.Fatal(err)
		}
		byKind[meta.Kind] = []byte(text)
	}
	return byKind
}

func mustDecode[T any](t *testing.T, text []byte) *T {
	t.Helper()
	object, err := decode[T](text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return object
}

func operatorResource(t *testing.T) *collectorResource {
	t.Helper()
	return mustDecode[collectorResource](t, example(t, "kubernetes/opentelemetrycollector.yaml")["OpenTelemetryCollector"])
}

// With another exporter, NIXL ignores the directory. Without the directory, it
// creates no ring.
func TestExamplesSetAllThreeVariables(t *testing.T) {
	t.Parallel()
	pods := make(map[string]corev1.PodSpec)
	for _, name := range []string{"vllm.yaml", "sglang.yaml"} {
		pods[name] = mustDecode[appsv1.Deployment](t, example(t, "kubernetes/"+name)["Deployment"]).Spec.Template.Spec
	}
	for _, c := range mustDecode[dynamoGraph](t, example(t, "kubernetes/dynamo.yaml")["DynamoGraphDeployment"]).Spec.Components {
		if c.Type != "frontend" {
			pods["dynamo.yaml "+c.Name] = c.PodTemplate.Spec
		}
	}
	patch := render(t, endpoint, "mode: sidecar").configMap.Data["patch.yaml"]
	pods["patch.yaml"] = mustDecode[appsv1.Deployment](t, []byte(patch)).Spec.Template.Spec
	for name, pod := range pods {
		if name != "patch.yaml" {
			checkMounts(t, pod)
		}
		env := make(map[string]string)
		for _, e := range pod.Containers[0].Env {
			env[e.Name] = e.Value
		}
		if env["NIXL_TELEMETRY_ENABLE"] != "y" || env["NIXL_TELEMETRY_EXPORTER"] != "BUFFER" || env["NIXL_TELEMETRY_DIR"] == "" {
			t.Errorf("%s: the variables are %v", name, env)
		}
	}
}

// Every file that enables telemetry must also set the exporter.
func TestEveryDocumentedSetupNamesTheExporter(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{
		"README.md", "docs/*.md", "deploy/systemd/*", "examples/*/*.yaml", "deploy/helm/nixl-otel/templates/*",
		"receiver/nixlshmreceiver/README.md",
	} {
		files, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, error %v", pattern, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for line, enabled := range lines(string(text)) {
				if enabled && !strings.Contains(near(string(text), line), "NIXL_TELEMETRY_EXPORTER") {
					t.Errorf("%s:%d enables telemetry but doesn't set the exporter", file, line+1)
				}
			}
		}
	}
}

// lines reports which lines enable telemetry.
func lines(text string) map[int]bool {
	enabled := make(map[int]bool)
	for i, line := range strings.Split(text, "\n") {
		_, after, found := strings.Cut(line, "NIXL_TELEMETRY_ENABLE")
		after = strings.TrimLeft(after, "=: \",value")
		enabled[i] = found && strings.HasPrefix(after, "y") && !strings.HasPrefix(strings.TrimSpace(line), "|")
	}
	return enabled
}

// near returns a line with the line before it and the two lines after it.
func near(text string, line int) string {
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, line-1):min(len(all), line+3)], "\n")
}

// The operator's resource runs the Collector with the same settings as the chart.
func TestOperatorsResourceAgreesWithTheChart(t *testing.T) {
	t.Parallel()
	resource := operatorResource(t).Spec
	m := render(t, endpoint)
	pod := m.daemonSet.Spec.Template.Spec
	container := collectorOf(t, pod)
	for name, pair := range map[string][2]any{
		"securityContext":    {resource.SecurityContext, container.SecurityContext},
		"podSecurityContext": {resource.PodSecurityContext, pod.SecurityContext},
		"hostPID":            {resource.HostPID, pod.HostPID},
		"tolerations":        {resource.Tolerations, pod.Tolerations},
		"resources":          {resource.Resources, container.Resources},
		"image":              {resource.Image, container.Image},
		"update strategy":    {resource.DaemonSetUpdateStrategy.RollingUpdate, m.daemonSet.Spec.UpdateStrategy.RollingUpdate},
		"association": {
			at(resource.Config, "processors", "k8s_attributes", "pod_association"),
			at(m.config(t), "processors", "k8s_attributes", "pod_association"),
		},
		"discovery": {
			at(resource.Config, "receivers", "nixl_shm", "discovery"), at(m.config(t), "receivers", "nixl_shm", "discovery"),
		},
	} {
		if a, b := asYAML(t, pair[0]), asYAML(t, pair[1]); a != b {
			t.Errorf("%s:\n%s\nin the chart:\n%s", name, a, b)
		}
	}
	objects := example(t, "kubernetes/opentelemetrycollector.yaml")
	account := mustDecode[corev1.ServiceAccount](t, objects["ServiceAccount"])
	role := mustDecode[rbacv1.ClusterRole](t, objects["ClusterRole"])
	binding := mustDecode[rbacv1.ClusterRoleBinding](t, objects["ClusterRoleBinding"])
	if !reflect.DeepEqual(role.Rules, m.role.Rules) || binding.RoleRef.Name != role.Name ||
		binding.Subjects[0].Name != account.Name || resource.ServiceAccount != account.Name ||
		binding.Subjects[0].Namespace != account.Namespace {
		t.Errorf("account %v, role %v, binding %v", account, role, binding)
	}
}

func asYAML(t *testing.T, object any) string {
	t.Helper()
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// yamlBlocks returns the YAML code blocks of a document that begin with prefix.
func yamlBlocks(t *testing.T, file, prefix string) (list []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "```yaml\n")[1:] {
		if block, _, _ = strings.Cut(block, "```"); strings.HasPrefix(block, prefix) {
			list = append(list, block)
		}
	}
	if len(list) == 0 {
		t.Fatal(fmt.Errorf("%s has no block that begins with %q", file, prefix))
	}
	return list
}
