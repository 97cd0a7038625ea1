// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

const (
	chartDir  = "../../deploy/helm/nixl-otel"
	release   = "r"
	namespace = "nixl-system"
)

var modes = []string{"processes", "kubelet", "sidecar"}

// endpoint is the only value that has no default.
const endpoint = `otlp: {endpoint: "http://gateway:4317"}`

// manifests are the objects of a release.
type manifests struct {
	text  string // all objects, without the notes
	notes string

	configMap  corev1.ConfigMap
	dashboards []corev1.ConfigMap
	daemonSet  *appsv1.DaemonSet
	account    *corev1.ServiceAccount
	role       *rbacv1.ClusterRole
	binding    *rbacv1.ClusterRoleBinding
	podMonitor *monitoringv1.PodMonitor
	rule       *monitoringv1.PrometheusRule
	policy     *networkingv1.NetworkPolicy
}

// render renders the chart with values in YAML. Later values override earlier ones.
func render(t *testing.T, values ...string) manifests {
	t.Helper()
	m, err := tryRender(t, values...)
	must.OK(t, err)
	return m
}

func tryRender(t *testing.T, values ...string) (m manifests, err error) {
	t.Helper()
	c := load(t)
	merged := make(chartutil.Values)
	for _, text := range values {
		over, err := chartutil.ReadValues([]byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		merged = chartutil.CoalesceTables(over, merged)
	}
	options := chartutil.ReleaseOptions{Name: release, Namespace: namespace, IsInstall: true, Revision: 1}
	all, err := chartutil.ToRenderValues(c, merged, options, chartutil.DefaultCapabilities)
	if err != nil {
		return m, err
	}
	files, err := engine.Engine{Strict: true}.Render(c, all)
	if err != nil {
		return m, err
	}
	for path, text := range files {
		switch {
		case strings.HasSuffix(path, "NOTES.txt"):
			m.notes = text
		case !strings.HasSuffix(path, ".tpl"):
			err = errors.Join(err, m.decode(path, text))
		}
	}
	return m, err
}

func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load(chartDir)
	must.OK(t, err)
	return c
}

// decode adds the objects of a rendered template.
func (m *manifests) decode(path, text string) error {
	for document := range strings.SplitSeq(text, "\n---\n") {
		var meta metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &meta); err != nil {
			return fmt.Errorf("%s: %w\n%s", path, err, document)
		}
		if meta.Kind == "" {
			continue
		}
		m.text += "---\n" + document
		if err := m.object(meta, []byte(document)); err != nil {
			return fmt.Errorf("%s: %w\n%s", path, err, document)
		}
	}
	return nil
}

func (m *manifests) object(meta metav1.TypeMeta, text []byte) error {
	switch kind := meta.APIVersion + " " + meta.Kind; kind {
	case "v1 ConfigMap":
		c, err := decode[corev1.ConfigMap](text)
		if strings.HasPrefix(filepath.Base(c.Name), release+"-nixl-otel-") {
			m.dashboards = append(m.dashboards, *c)
		} else {
			m.configMap = *c
		}
		return err
	case "apps/v1 DaemonSet":
		return into(&m.daemonSet, text)
	case "v1 ServiceAccount":
		return into(&m.account, text)
	case "rbac.authorization.k8s.io/v1 ClusterRole":
		return into(&m.role, text)
	case "rbac.authorization.k8s.io/v1 ClusterRoleBinding":
		return into(&m.binding, text)
	case "monitoring.coreos.com/v1 PodMonitor":
		return into(&m.podMonitor, text)
	case "monitoring.coreos.com/v1 PrometheusRule":
		return into(&m.rule, text)
	case "networking.k8s.io/v1 NetworkPolicy":
		return into(&m.policy, text)
	default:
		return fmt.Errorf("no test decodes %s", kind)
	}
}

func into[T any](to **T, text []byte) (err error) {
	*to, err = decode[T](text)
	return err
}

// decode decodes an object. It rejects duplicate keys and fields that the type
// doesn't have.
func decode[T any](text []byte) (*T, error) {
	object := new(T)
	return object, yaml.UnmarshalStrict(text, object)
}

// documents splits a YAML stream.
func documents(r io.Reader) ([]string, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	list := strings.Split("\n"+string(text), "\n---\n")
	return slices.DeleteFunc(list, func(d string) bool { return strings.TrimSpace(d) == "" }), nil
}

// config returns the Collector's configuration in a release.
func (m *manifests) config(t *testing.T) map[string]any {
	t.Helper()
	config := make(map[string]any)
	must.OK(t, yaml.UnmarshalStrict([]byte(m.configMap.Data["config.yaml"]), &config))
	return config
}
