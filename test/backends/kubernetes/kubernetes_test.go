// Package kubernetes checks deploy/kubernetes against Kubernetes' own types, as
// kustomize puts it together. What the Collector thinks of its configuration
// there `make validate-examples` asks.
package kubernetes

import (
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const dir = "../../../deploy/kubernetes"

func decode[T any](t *testing.T, text []byte) (object T) {
	t.Helper()
	if err := yaml.UnmarshalStrict(text, &object); err != nil {
		t.Fatalf("%v, of\n%s", err, text)
	}
	return object
}

func TestKustomization(t *testing.T) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var config corev1.ConfigMap
	var set appsv1.DaemonSet
	for _, r := range built.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		switch kind := r.GetKind(); kind {
		case "Namespace":
			decode[corev1.Namespace](t, text)
		case "ConfigMap":
			config = decode[corev1.ConfigMap](t, text)
		case "DaemonSet":
			set = decode[appsv1.DaemonSet](t, text)
		default:
			t.Errorf("a %s isn't checked", kind)
		}
	}
	pod := set.Spec.Template
	selector := labels.SelectorFromSet(set.Spec.Selector.MatchLabels)
	if selector.Empty() || !selector.Matches(labels.Set(pod.Labels)) {
		t.Errorf("selector %v, labels of the pod %v", selector, pod.Labels)
	}
	if n := set.Spec.UpdateStrategy.RollingUpdate.MaxSurge; n == nil || n.IntValue() != 0 {
		t.Errorf("%v more pods than one per node, where a ring has one consumer", n)
	}
	checkMounts(t, pod.Spec)
	if name := pod.Spec.Volumes[2].ConfigMap.Name; name != config.Name || config.Data["config.yaml"] == "" {
		t.Errorf("the pod wants ConfigMap %q, there is %q with %d files", name, config.Name, len(config.Data))
	}
	container := pod.Spec.Containers[0]
	ports := make(map[string]bool)
	for _, p := range container.Ports {
		ports[p.Name] = true
	}
	for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe} {
		if port := probe.HTTPGet.Port.StrVal; !ports[port] {
			t.Errorf("a probe asks port %q", port)
		}
	}
	rings := container.VolumeMounts[0].MountPath
	var receiver struct {
		Receivers map[string]struct{ Directories []string }
	}
	if err := yaml.Unmarshal([]byte(config.Data["config.yaml"]), &receiver); err != nil {
		t.Fatal(err)
	}
	if dirs := receiver.Receivers["nixl_shm"].Directories; len(dirs) != 1 || dirs[0] != rings {
		t.Errorf("the receiver looks into %v, the rings are in %s", dirs, rings)
	}
}

// The patches fit a Deployment, and have agents write where rings are mounted.
func TestPatches(t *testing.T) {
	for _, name := range []string{"inference-patch.yaml", "sidecar-patch.yaml"} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			pod := decode[appsv1.Deployment](t, text).Spec.Template.Spec
			checkMounts(t, pod)
			for _, c := range append(pod.InitContainers, pod.Containers...) {
				for _, env := range c.Env {
					if env.Name == "NIXL_TELEMETRY_DIR" && env.Value != c.VolumeMounts[0].MountPath {
						t.Errorf("%s: rings in %s, but %s is mounted", c.Name, env.Value, c.VolumeMounts[0].MountPath)
					}
				}
			}
		})
	}
}

// checkMounts fails the test if a mount and a volume lack each other.
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
			t.Errorf("nobody mounts %s", name)
		}
	}
}
