// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Kubelet finds the emptyDir volumes of the pods on a node, in the directory where
// the kubelet keeps them:
//
//	<pod UID>/volumes/kubernetes.io~empty-dir/<volume>
//
// Pods can write only to the volumes, not to the directories above them.
type Kubelet struct {
	Pods    string   // the kubelet's directory of pods
	Volumes []string // doublestar patterns of volume names
}

// Check reports the invalid values. Each error starts with the key of the receiver's
// configuration.
func (k *Kubelet) Check() error {
	var errs []error
	if !filepath.IsAbs(k.Pods) {
		errs = append(errs, fmt.Errorf("discovery::kubelet::path: %q must be an absolute path, such as %s", k.Pods, DefaultKubeletPods))
	}
	if len(k.Volumes) == 0 {
		errs = append(errs, errors.New(`discovery::kubelet::volumes: an empty list selects no volume: use ["*"] or remove the key to select all volumes`))
	}
	return errors.Join(append(errs, CheckPatterns("discovery::kubelet::volumes", k.Volumes))...)
}

// Finder returns a Finder that finds the volumes.
func (k Kubelet) Finder(by IdentifyBy) Finder { return kubelet{k, by} }

type kubelet struct {
	Kubelet
	by IdentifyBy
}

// DefaultKubeletPods is the kubelet's default directory of pods.
const DefaultKubeletPods = "/var/lib/kubelet/pods"

// maxPods limits the number of pods, and of volumes per pod, in a search. The kubelet
// runs up to 110 pods by default.
const maxPods = 4096

// Name implements [Finder].
func (k kubelet) Name() string { return k.Pods }

// Find implements [Finder].
func (k kubelet) Find(time.Time) (map[string]Location, error) {
	pods, err := subdirs(k.Pods, ".")
	if err != nil {
		return nil, fmt.Errorf("list the pods of this node: %w", err)
	}
	found := make(map[string]Location)
	var errs []error
	for _, pod := range pods {
		volumes := filepath.Join(pod, "volumes", "kubernetes.io~empty-dir")
		names, err := subdirs(k.Pods, volumes)
		if err != nil && !isAbsent(err) { // a pod may have no such volumes, or have been deleted
			errs = append(errs, err)
		}
		for _, name := range names {
			if MatchesAny(k.Volumes, name) {
				v := volume{k, pod, filepath.Join(volumes, name), name}
				found[v.dir] = v
			}
		}
	}
	return found, errors.Join(errs...)
}

// subdirs returns the names of the directories in the directory name below dir.
func subdirs(dir, name string) (names []string, err error) {
	f, err := files.OpenDir(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(maxPods)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// volume is an emptyDir volume of a pod.
type volume struct {
	kubelet kubelet
	pod     string // its UID
	dir     string // relative to the pods' directory
	name    string
}

// Path implements [Location].
func (v volume) Path() string { return filepath.Join(v.kubelet.Pods, v.dir) }

// Holder implements [Location].
func (v volume) Holder() drain.Holder { return drain.Holder{Pod: v.pod} }

// OpenDir implements [Location].
func (v volume) OpenDir(name string) (*files.Dir, error) {
	f, err := files.OpenDir(v.kubelet.Pods, filepath.Join(v.dir, name))
	if name == "." && errors.Is(err, fs.ErrNotExist) {
		err = errors.Join(errGone, err) // the pod was deleted
	}
	return f, err
}

// HasRings implements [Location].
func (v volume) HasRings() bool { return true }

// Identify implements [Location].
func (v volume) Identify(a drain.Agent, _ *ringbuf.Reader, _ time.Time) (drain.Agent, Mapped) {
	return v.IdentifyStore(a, 0), MaybeMapped
}

// IdentifyStore implements [Location].
func (v volume) IdentifyStore(a drain.Agent, _ int64) drain.Agent {
	a.Dir = v.name
	return v.kubelet.by.identify(a, origin{pod: v.pod})
}
