// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package kube

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// The images that scripts/kube-test.sh loads.
const (
	collectorImage = "localhost/otelcol-nixl"
	agentImage     = "localhost/nixl-kube-agent:test"
	imageTag       = "test"
)

// system is the namespace of the Collectors and of the sink.
const system = "nixl-test-system"

// needCluster skips the test unless scripts/kube-test.sh runs it.
func needCluster(t *testing.T) {
	t.Helper()
	if os.Getenv("KUBE_TEST") == "" {
		t.Skip("KUBE_TEST isn't set; `make kube-test` runs this test in a cluster")
	}
}

// run runs a program and returns what it prints.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := try(t, "", name, args...)
	must.OK(t, err)
	return out
}

func try(t *testing.T, stdin, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = strings.NewReader(stdin), &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out), nil
}

func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return run(t, "kubectl", args...)
}

// apply creates the objects of a manifest.
func apply(t *testing.T, manifest string) {
	t.Helper()
	if _, err := try(t, manifest, "kubectl", "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// createNamespaces creates namespaces. At the end of the test it removes them
// with all their objects.
func createNamespaces(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		kubectl(t, "create", "namespace", name)
	}
	t.Cleanup(func() {
		args := append([]string{"delete", "namespace", "--wait=true"}, names...)
		if out, err := exec.Command("kubectl", args...).CombinedOutput(); err != nil { //nolint:noctx // the test's context has ended
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// eventually waits for the cluster, whose changes take longer than others.
func eventually(t *testing.T, check func() string) {
	t.Helper()
	must.Within(t, 3*time.Minute, check)
}

// pod is the state of an inference pod in the API server.
type pod struct {
	uid, node string
	container string // ID, without the runtime's name
	restarts  int
	ready     bool
}

func getPod(t *testing.T, namespace, name string) (p pod, err error) {
	t.Helper()
	out, err := try(t, "", "kubectl", "-n", namespace, "get", "pod", name, "-o", "json")
	if err != nil {
		return p, err
	}
	var object struct {
		Metadata struct{ UID, DeletionTimestamp string }
		Spec     struct{ NodeName string }
		Status   struct {
			ContainerStatuses []struct {
				Name, ContainerID string
				RestartCount      int
				Ready             bool
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &object); err != nil {
		return p, err
	}
	p.uid, p.node = object.Metadata.UID, object.Spec.NodeName
	for _, c := range object.Status.ContainerStatuses {
		if c.Name == "inference" {
			_, p.container, _ = strings.Cut(c.ContainerID, "://")
			p.restarts = c.RestartCount
			p.ready = c.Ready && object.Metadata.DeletionTimestamp == ""
		}
	}
	return p, nil
}

// chart is a release of the chart.
type chart struct {
	name, namespace string
	values          []string // from the installation and all upgrades
}

func chartPath(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../deploy/helm/nixl-otel")
	must.OK(t, err)
	return path
}

// install installs the chart. At the end of the test it uninstalls it.
func install(t *testing.T, name, namespace string, values ...string) *chart {
	t.Helper()
	c := &chart{name: name, namespace: namespace, values: append([]string{
		"image.repository=" + collectorImage, "image.tag=" + imageTag,
		"otlp.endpoint=http://" + clusterIP(t) + ":4317",
		"collectionInterval=1s", "processes.interval=1s",
	}, values...)}
	c.helm(t, "install")
	t.Cleanup(func() {
		out, err := exec.Command("helm", "-n", namespace, "uninstall", name, "--ignore-not-found", "--wait").CombinedOutput() //nolint:noctx // the test's context has ended
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	return c
}

func (c *chart) upgrade(t *testing.T, values ...string) {
	t.Helper()
	c.values = append(c.values, values...)
	c.helm(t, "upgrade")
	if c.daemon(t) {
		c.awaitRollout(t)
	}
}

func (c *chart) helm(t *testing.T, command string) {
	t.Helper()
	args := []string{"-n", c.namespace, command, c.name, chartPath(t), "--wait", "--timeout", "3m"}
	for _, value := range c.values {
		args = append(args, "--set", value)
	}
	out, err := try(t, "", "helm", args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, c.logs(t))
	}
	t.Log(out)
}

func (c *chart) fullName() string { return c.name + "-nixl-otel" }

func (c *chart) daemon(t *testing.T) bool {
	t.Helper()
	return kubectl(t, "-n", c.namespace, "get", "daemonset", "-o", "name") != ""
}

func (c *chart) awaitRollout(t *testing.T) {
	t.Helper()
	kubectl(t, "-n", c.namespace, "rollout", "status", "daemonset/"+c.fullName(), "--timeout=3m")
}

// logs returns the end of the Collectors' logs.
func (c *chart) logs(t *testing.T) string {
	t.Helper()
	out, err := try(t, "", "kubectl", "-n", c.namespace, "logs", "--all-pods", "--all-containers", "--tail=200", "daemonset/"+c.fullName())
	if err != nil {
		return err.Error()
	}
	return out
}

// uninstall uninstalls the release, and fails the test if other objects of it than kept
// remain in the cluster.
func (c *chart) uninstall(t *testing.T, kept ...string) {
	t.Helper()
	run(t, "helm", "-n", c.namespace, "uninstall", c.name, "--wait")
	const kinds = "daemonsets,pods,configmaps,serviceaccounts,clusterroles,clusterrolebindings,networkpolicies,secrets"
	eventually(t, func() string {
		left := strings.Fields(kubectl(t, "get", kinds, "-A", "-o", "name", "-l", "app.kubernetes.io/instance="+c.name))
		if slices.Equal(left, kept) {
			return ""
		}
		return fmt.Sprintf("%q are left, want %q", left, kept)
	})
}
