// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"flag"
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

var update = flag.Bool("update", false, "write the golden files and the example for the OpenTelemetry Operator")

const operatorFile = examples + "kubernetes/opentelemetrycollector.yaml"

const operatorHeader = `# The DaemonSet of the Helm chart as a resource of the OpenTelemetry Operator, with the
# role for the k8s_attributes processor. The image must contain the receiver, which the
# operator's default image doesn't.
#
# Generated from the chart, whose templates explain the settings:
# go -C test test ./chart -run OperatorsResource -update
`

// collectorResource is the part of the OpenTelemetry Operator's v1beta1 API that
// the example uses.
type collectorResource struct {
	metav1.TypeMeta `json:",inline"`

	Metadata map[string]string `json:"metadata"`

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

// The operator's resource runs the Collector with the settings of the chart.
func TestOperatorsResourceIsGeneratedFromTheChart(t *testing.T) {
	t.Parallel()
	want := operatorExample(t)
	if *update {
		must.OK(t, os.WriteFile(operatorFile, want, 0o600))
	}
	got, err := os.ReadFile(operatorFile)
	must.OK(t, err)
	if !bytes.Equal(got, want) {
		t.Errorf("%s isn't what the chart renders; run the command in its header. The chart renders:\n%s", operatorFile, want)
	}
}

// operatorExample returns the example, as rendered from the chart.
func operatorExample(t *testing.T) []byte {
	t.Helper()
	const values = `{fullnameOverride: nixl-collector, otlp: {endpoint: "http://gateway.monitoring:4317"}}`
	m := render(t, values)
	pod := m.daemonSet.Spec.Template.Spec
	c := collectorOf(t, pod)
	own := func(name string) bool { return name == "config" } // the operator mounts the configuration
	r := &collectorResource{
		TypeMeta: metav1.TypeMeta{APIVersion: "opentelemetry.io/v1beta1", Kind: "OpenTelemetryCollector"},
		Metadata: map[string]string{"name": "nixl", "namespace": "monitoring"},
	}
	s := &r.Spec
	s.Mode, s.Image, s.HostPID, s.ServiceAccount = "daemonset", c.Image, pod.HostPID, pod.ServiceAccountName
	s.PodSecurityContext, s.SecurityContext, s.Tolerations = pod.SecurityContext, c.SecurityContext, pod.Tolerations
	s.Env, s.Resources, s.Config = c.Env, c.Resources, m.config(t)
	s.DaemonSetUpdateStrategy = m.daemonSet.Spec.UpdateStrategy
	s.DaemonSetUpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
	for _, v := range pod.Volumes {
		if !own(v.Name) {
			s.Volumes = append(s.Volumes, v)
		}
	}
	for _, v := range c.VolumeMounts {
		if !own(v.Name) {
			s.VolumeMounts = append(s.VolumeMounts, v)
		}
	}
	text := []byte(operatorHeader + asYAML(t, r))
	m.account.Labels, m.role.Labels, m.binding.Labels = nil, nil, nil
	m.account.AutomountServiceAccountToken = nil // the chart's pod requests the token itself
	m.role.Name, m.binding.Name, m.binding.RoleRef.Name = m.account.Name, m.account.Name, m.account.Name
	m.account.Namespace, m.binding.Subjects[0].Namespace = "monitoring", "monitoring"
	for _, object := range []any{m.account, m.role, m.binding} {
		text = append(append(text, "---\n"...), asYAML(t, object)...)
	}
	return text
}

func asYAML(t *testing.T, object any) string {
	t.Helper()
	text, err := yaml.Marshal(object)
	must.OK(t, err)
	return string(text)
}
