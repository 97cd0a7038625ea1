// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chart

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// apiServer is a Kubernetes API server that doesn't answer at first, and then knows one
// pod.
type apiServer struct {
	*httptest.Server

	answer chan struct{} // closed when it starts to answer
	pod    corev1.Pod
}

func startAPIServer(t *testing.T, pod corev1.Pod) *apiServer {
	t.Helper()
	s := &apiServer{answer: make(chan struct{}), pod: pod}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case <-s.answer:
	case <-r.Context().Done():
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("sendInitialEvents") != "" { // the client lists instead
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid,
			Code: http.StatusUnprocessableEntity,
		})
		return
	}
	if r.URL.Query().Get("watch") != "" {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done() // nothing changes
		return
	}
	var list any = corev1.NamespaceList{TypeMeta: metav1.TypeMeta{Kind: "NamespaceList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	if strings.HasSuffix(r.URL.Path, "/pods") {
		list = corev1.PodList{
			TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"},
			Items: []corev1.Pod{s.pod},
		}
	}
	_ = json.NewEncoder(w).Encode(list)
}

// kubeconfig returns a file with the address of the server.
func (s *apiServer) kubeconfig(t *testing.T) string {
	t.Helper()
	return write(t, filepath.Join(t.TempDir(), "kubeconfig"), []byte(fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: test,
clusters: [{name: test, cluster: {server: %q}}], users: [{name: test, user: {}}],
contexts: [{name: test, context: {cluster: test, user: test}}]}`, s.URL)))
}

func write(t *testing.T, path string, text []byte) string {
	t.Helper()
	must.OK(t, os.MkdirAll(filepath.Dir(path), 0o750))
	must.OK(t, os.WriteFile(path, text, 0o600))
	return path
}

// With the chart's configuration, a ring is drained although the API server hangs. The
// totals are exported once the name of the pod is known, and never without it, because a
// backend would count both series. The API server never knows the UID of a static pod, so its
// totals don't wait.
func TestRingsAreDrainedWhileTheAPIServerHangs(t *testing.T) {
	t.Parallel()
	program := collector(t)
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "decode-7", Namespace: "inference", UID: "0f0e3a3e-7b1f-4f57-a2a4-d2ad9b38f2b4"}}
	server := startAPIServer(t, pod)
	recorded, err := os.ReadFile("../../testdata/rings/real-agent/v1.4.0_posix_200xfer.ring")
	must.OK(t, err)
	dir, static := t.TempDir(), strings.Repeat("5f", 16)
	volume := func(uid string) string {
		return filepath.Join(dir, uid, "volumes", "kubernetes.io~empty-dir", "shm", "agent")
	}
	ring := write(t, volume(string(pod.UID)), recorded)
	write(t, volume(static), recorded)
	port := proc.FreePort(t)
	output := filepath.Join(t.TempDir(), "metrics.json")
	m := render(t, endpoint, fmt.Sprintf(`
mode: kubelet
kubelet: {path: %q}
collectionInterval: 100ms
receiver: {initial_delay: 0s}
telemetry: {port: %d}
config:
  extensions: {health_check: {endpoint: "127.0.0.1:0"}, file_storage: {directory: %q}}
  processors: {k8s_attributes: {auth_type: kubeConfig}}
  exporters: {file: {path: %q, flush_interval: 10ms}}
  service: {pipelines: {metrics: {exporters: [file]}}}
`, dir, port, t.TempDir(), output))
	config := write(t, filepath.Join(t.TempDir(), "config.yaml"), []byte(m.configMap.Data["config.yaml"]))

	cmd := exec.CommandContext(t.Context(), program, "--config="+config)
	cmd.Env = []string{"K8S_NODE_NAME=node", "KUBECONFIG=" + server.kubeconfig(t)}
	collector := proc.Start(t, cmd)
	read := func(path string) string {
		text, _ := os.ReadFile(path) // it may not exist yet
		return string(text)
	}

	must.EventuallyTrue(t, "drained ring", func() bool { return read(ring) != string(recorded) })
	must.EventuallyTrue(t, "totals at the processors", func() bool {
		return exported.MatchString(get(t, fmt.Sprintf("http://127.0.0.1:%d/metrics", port)))
	})
	must.EventuallyTrue(t, "totals of the static pod", func() bool { return strings.Contains(read(output), static) })
	close(server.answer)
	must.EventuallyTrue(t, "totals", func() bool { return strings.Contains(read(output), pod.Name) })
	collector.Stop(t, syscall.SIGTERM)
	for line := range strings.Lines(read(output)) {
		if strings.Contains(line, string(pod.UID)) && !strings.Contains(line, pod.Name) {
			t.Errorf("totals were exported without the name of the pod:\n%s", line)
		}
	}
}

// exported matches the number of points that a receiver has exported, unless it is 0.
var exported = regexp.MustCompile(`(?m)^otelcol_receiver_accepted_metric_points\S* [1-9]`)

func get(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	must.OK(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "" // the server isn't ready
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return string(text)
}
