// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

func TestHelmLintFindsNothing(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		values := map[string]any{"mode": mode, "otlp": map[string]any{"endpoint": "http://gateway:4317"}}
		linter := lint.All(chartDir, values, namespace, true)
		for _, message := range linter.Messages {
			if message.Severity > support.InfoSev {
				t.Errorf("mode %s: %v", mode, message)
			}
		}
	}
}

// everything turns on all optional objects.
const everything = `
otlp:
  endpoint: https://backend:4317
  headers: {tenant: $a}
  headersFromSecret: [{name: authorization, secret: backend, key: token}]
  tls: {caSecret: ca, clientSecret: client}
prometheus: {enabled: true}
clusterName: east
podMonitor: {enabled: true}
prometheusRule: {enabled: true}
dashboards: {enabled: true}
networkPolicy: {enabled: true}
`

// The receiver must see a change of these attributes, to begin at zero.
func TestClusterIsSetByTheReceiver(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		m := render(t, endpoint, "mode: "+mode+"\nclusterName: east")
		config := m.config(t)
		if got := at(config, "receivers", "nixl_shm", "resource", "k8s.cluster.name"); got != "east" {
			t.Errorf("mode %s: the receiver sets the cluster to %v", mode, got)
		}
		for name := range at(config, "processors").(map[string]any) { //nolint:errcheck,forcetypeassert // or the test panics
			if strings.HasPrefix(name, "resource") {
				t.Errorf("mode %s has the processor %s", mode, name)
			}
		}
	}
}

func TestObjectsFitTogetherInEveryMode(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		for name, values := range map[string]string{"least": endpoint, "everything": everything} {
			t.Run(mode+" "+name, func(t *testing.T) {
				t.Parallel()
				m := render(t, values, "mode: "+mode)
				pod := podSpec(t, m)
				checkMounts(t, pod)
				checkPorts(t, pod)
				checkPrivileges(t, mode, pod)
				checkVariables(t, m, pod)
				checkNixlring(t, mode, pod)
				if privileged := strings.Contains(m.notes, "enforce=privileged"); privileged != (mode != "sidecar") {
					t.Errorf("the notes suggest to allow privileged pods: %v", privileged)
				}
				if m.daemonSet != nil {
					checkSelectors(t, m)
				}
			})
		}
	}
}

// podSpec returns the pod of the Collector: that of the DaemonSet, or that of an
// inference workload with the sidecar.
func podSpec(t *testing.T, m manifests) corev1.PodSpec {
	t.Helper()
	if m.daemonSet != nil {
		return m.daemonSet.Spec.Template.Spec
	}
	patch, err := decode[appsv1.Deployment]([]byte(m.configMap.Data["patch.yaml"]))
	if err != nil {
		t.Fatal(err)
	}
	return patch.Spec.Template.Spec
}

func collectorOf(t *testing.T, pod corev1.PodSpec) corev1.Container {
	t.Helper()
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		if c.Name == "otelcol-nixl" {
			return c
		}
	}
	t.Fatal("the pod has no Collector")
	return corev1.Container{}
}

// checkMounts fails the test if a mount has no volume or a volume has no mount.
func checkMounts(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	mounted := make(map[string]bool)
	for _, v := range pod.Volumes {
		mounted[v.Name] = false
	}
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		for _, m := range c.VolumeMounts {
			if _, ok := mounted[m.Name]; !ok {
				t.Errorf("%s mounts %s, which isn't a volume", c.Name, m.Name)
			}
			mounted[m.Name] = true
		}
	}
	for name, ok := range mounted {
		if !ok {
			t.Errorf("nothing mounts %s", name)
		}
	}
}

func checkPorts(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	c := collectorOf(t, pod)
	ports := make(map[string]bool)
	for _, p := range c.Ports {
		ports[p.Name] = true
	}
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe} {
		if port := probe.HTTPGet.Port.StrVal; !ports[port] {
			t.Errorf("a probe uses the undefined port %q", port)
		}
	}
}

// checkPrivileges fails the test if the Collector has more privileges than its
// mode needs, or fewer.
func checkPrivileges(t *testing.T, mode string, pod corev1.PodSpec) {
	t.Helper()
	want := map[string][]corev1.Capability{
		"processes": {"DAC_OVERRIDE", "LEASE", "SYS_PTRACE"},
		"kubelet":   {"DAC_OVERRIDE", "LEASE"},
		"sidecar":   nil,
	}
	c := collectorOf(t, pod)
	s := c.SecurityContext
	if got := slices.Clone(s.Capabilities.Add); !slices.Equal(slices.Sorted(slices.Values(got)), want[mode]) {
		t.Errorf("capabilities %v, want %v", got, want[mode])
	}
	if !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem {
		t.Errorf("security context %v", s)
	}
	seccomp := s.SeccompProfile
	if mode != "sidecar" {
		seccomp = pod.SecurityContext.SeccompProfile
	}
	if seccomp == nil || seccomp.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("seccomp profile %v", seccomp)
	}
	if pod.HostPID != (mode == "processes") || pod.HostNetwork || pod.HostIPC {
		t.Errorf("hostPID %v, hostNetwork %v, hostIPC %v", pod.HostPID, pod.HostNetwork, pod.HostIPC)
	}
	var paths []string
	for _, v := range pod.Volumes {
		if v.HostPath != nil {
			paths = append(paths, v.HostPath.Path)
		}
	}
	hostPaths := map[string][]string{
		"processes": {"/var/lib/otelcol-nixl"},
		"kubelet":   {"/var/lib/otelcol-nixl", "/var/lib/kubelet/pods"},
	}
	if !slices.Equal(paths, hostPaths[mode]) {
		t.Errorf("directories of the node: %v, want %v", paths, hostPaths[mode])
	}
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		if c.Image != "" && !strings.HasSuffix(c.Image, "otelcol-nixl:"+load(t).Metadata.AppVersion) {
			t.Errorf("%s runs the image %s", c.Name, c.Image)
		}
	}
}

// checkVariables fails the test if the configuration refers to an environment
// variable that the container doesn't have.
func checkVariables(t *testing.T, m manifests, pod corev1.PodSpec) {
	t.Helper()
	c := collectorOf(t, pod)
	has := make(map[string]bool)
	for _, e := range c.Env {
		has[e.Name] = true
	}
	rest := m.configMap.Data["config.yaml"]
	for {
		_, after, found := strings.Cut(rest, "${env:")
		if !found {
			return
		}
		name, tail, _ := strings.Cut(after, "}")
		if rest = tail; !has[name] {
			t.Errorf("the configuration refers to %s, which the container doesn't have", name)
		}
	}
}

// checkNixlring fails the test unless nixlring needs no argument in the container: a variable says where
// it finds agents, unless it discovers processes.
func checkNixlring(t *testing.T, mode string, pod corev1.PodSpec) {
	t.Helper()
	want := map[string]string{"kubelet": "NIXLRING_KUBELET", "sidecar": "NIXL_TELEMETRY_DIR"}[mode]
	c := collectorOf(t, pod)
	for _, name := range []string{"NIXLRING_KUBELET", "NIXL_TELEMETRY_DIR"} {
		i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == name })
		if (i >= 0) != (name == want) {
			t.Errorf("the container has %s: %v", name, i >= 0)
			continue
		}
		if i >= 0 && !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == c.Env[i].Value }) {
			t.Errorf("nothing is mounted at %s", c.Env[i].Value)
		}
	}
}

func checkSelectors(t *testing.T, m manifests) {
	t.Helper()
	pod := labels.Set(m.daemonSet.Spec.Template.Labels)
	selectors := map[string]map[string]string{"DaemonSet": m.daemonSet.Spec.Selector.MatchLabels}
	if m.podMonitor != nil {
		selectors["PodMonitor"] = m.podMonitor.Spec.Selector.MatchLabels
	}
	if m.policy != nil {
		selectors["NetworkPolicy"] = m.policy.Spec.PodSelector.MatchLabels
	}
	for kind, labelsOf := range selectors {
		if s := labels.SelectorFromSet(labelsOf); s.Empty() || !s.Matches(pod) {
			t.Errorf("%s selects %v, the pod has %v", kind, labelsOf, pod)
		}
	}
	account := m.daemonSet.Spec.Template.Spec.ServiceAccountName
	if subject := m.binding.Subjects[0]; subject.Name != account || subject.Namespace != m.daemonSet.Namespace || m.account.Name != account {
		t.Errorf("ServiceAccount %s, binding to %v, pod runs as %s", m.account.Name, subject, account)
	}
	if m.binding.RoleRef.Name != m.role.Name {
		t.Errorf("binding to role %s, want %s", m.binding.RoleRef.Name, m.role.Name)
	}
	if n := m.daemonSet.Spec.UpdateStrategy.RollingUpdate.MaxSurge; n == nil || n.IntValue() != 0 {
		t.Errorf("maxSurge %v, want 0 because a ring has one consumer", n)
	}
}

// An association by connection would find the Collector's own pod.
func TestAttributionIsNeverByConnection(t *testing.T) {
	t.Parallel()
	m := render(t, endpoint)
	want := `[{"sources":[{"from":"resource_attribute","name":"k8s.pod.uid"}]}]`
	got, err := json.Marshal(at(m.config(t), "processors", "k8s_attributes", "pod_association"))
	if err != nil || string(got) != want {
		t.Errorf("error %v, association %s, want %s", err, got, want)
	}
}

func TestSidecarDoesNotAskTheAPIServer(t *testing.T) {
	t.Parallel()
	m := render(t, everything, "mode: sidecar")
	if m.role != nil || m.binding != nil || m.account != nil || m.daemonSet != nil {
		t.Error("there is a role, binding, service account or DaemonSet")
	}
}

func TestReleaseWithoutDestinationIsRejected(t *testing.T) {
	t.Parallel()
	if _, err := tryRender(t); err == nil || !strings.Contains(err.Error(), "otlp.endpoint") {
		t.Errorf("error %v", err)
	}
	for _, values := range []string{
		"prometheus: {enabled: true}",
		"config: {exporters: {debug: {}}, service: {pipelines: {metrics: {exporters: [debug]}}}}",
	} {
		render(t, values)
	}
}

// The default image is the one that the Dockerfile builds at a tag. The release
// script changes the version of both.
func TestChartHasTheVersionOfTheCollector(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../builder-full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var recipe struct{ Dist struct{ Version string } }
	if err := yaml.Unmarshal(text, &recipe); err != nil {
		t.Fatal(err)
	}
	if m := load(t).Metadata; m.Version != recipe.Dist.Version || m.AppVersion != recipe.Dist.Version {
		t.Errorf("version %s, appVersion %s, the recipe has %s", m.Version, m.AppVersion, recipe.Dist.Version)
	}
}

// A change of the configuration must start a rollout.
func TestConfigurationChangeRollsOut(t *testing.T) {
	t.Parallel()
	sum := func(values ...string) string {
		return render(t, values...).daemonSet.Spec.Template.Annotations["checksum/config"]
	}
	if a, b := sum(endpoint), sum(endpoint, "collectionInterval: 11s"); a == b || a == "" {
		t.Errorf("checksums %q and %q", a, b)
	}
	if a, b := sum(endpoint), sum(endpoint, "podMonitor: {enabled: true}"); a != b {
		t.Errorf("checksums %q and %q, but the configuration is the same", a, b)
	}
}

// The user's values replace the chart's values, even with false and 0.
func TestConfigurationIsMergedOverTheChartsOwn(t *testing.T) {
	t.Parallel()
	m := render(t, endpoint, `
receiver:
  max_rings: 7
  storage: ""
  histograms: {size: {kind: none}}
  discovery: {processes: {otel_resource_attributes: ["team.*"]}}
otlp: {exporter: {sending_queue: {queue_size: 9}}}
config:
  processors: {k8s_attributes: {wait_for_metadata: true}}
  exporters: {otlp_grpc: {retry_on_failure: {enabled: false}}}
`)
	config := m.config(t)
	if got := fmt.Sprint(at(config, "receivers", "nixl_shm", "discovery", "processes", "otel_resource_attributes")); got != "[team.*]" {
		t.Errorf("otel_resource_attributes is %s, want [team.*]", got)
	}
	for path, want := range map[string]any{
		"receivers nixl_shm max_rings":                                     7.0,
		"receivers nixl_shm histograms size kind":                          "none",
		"receivers nixl_shm storage":                                       "",
		"receivers nixl_shm collection_interval":                           "10s",
		"processors k8s_attributes wait_for_metadata":                      true,
		"exporters otlp_grpc retry_on_failure enabled":                     false,
		"exporters otlp_grpc retry_on_failure max_elapsed_time":            0.0,
		"exporters otlp_grpc sending_queue queue_size":                     9.0,
		"exporters otlp_grpc sending_queue num_consumers":                  1.0,
		"exporters otlp_grpc tls insecure":                                 true,
		"exporters otlp_grpc endpoint":                                     "http://gateway:4317",
		"receivers nixl_shm discovery processes interval":                  "5s",
		"receivers nixl_shm discovery processes env_attributes LOCAL_RANK": "nixl.local_rank",
	} {
		if got := at(config, strings.Fields(path)...); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
}

// The chart links to the files in dashboards/. Helm packages what they link to.
func TestPrometheusObjectsHaveEveryRuleAndDashboard(t *testing.T) {
	t.Parallel()
	m := render(t, everything)
	want := 0
	for _, pattern := range []string{"alerts*.yaml", "rules*.yaml"} {
		paths, err := filepath.Glob(filepath.Join("../../dashboards", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var file struct{ Groups []struct{ Rules []any } }
			if err := yaml.Unmarshal(text, &file); err != nil {
				t.Fatal(err)
			}
			for _, g := range file.Groups {
				want += len(g.Rules)
			}
		}
	}
	got := 0
	for _, g := range m.rule.Spec.Groups {
		got += len(g.Rules)
	}
	if got != want || want == 0 {
		t.Errorf("%d rules, dashboards/ has %d", got, want)
	}
	files, err := filepath.Glob("../../dashboards/grafana/*.json")
	if err != nil || len(m.dashboards) != len(files) {
		t.Errorf("%d dashboards, dashboards/grafana has %d (error %v)", len(m.dashboards), len(files), err)
	}
	for _, c := range m.dashboards {
		for name, text := range c.Data {
			if c.Labels["grafana_dashboard"] != "1" || !json.Valid([]byte(text)) {
				t.Errorf("%s: labels %v, valid JSON %v", name, c.Labels, json.Valid([]byte(text)))
			}
		}
	}
}
