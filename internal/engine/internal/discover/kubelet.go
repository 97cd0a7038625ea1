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
)

// Kubelet finds the emptyDir volumes of the pods on a node, in the directory where
// the kubelet keeps them:
//
//	<pod UID>/volumes/kubernetes.io~empty-dir/<volume>
//
// Pods can write only to the volumes, not to the directories above them.
type Kubelet struct {
	Pods string // the kubelet's directory of pods
}

// Check reports an invalid path. The error starts with the key of the receiver's configuration.
func (k *Kubelet) Check() error {
	if !filepath.IsAbs(k.Pods) {
		return fmt.Errorf("discovery::kubelet::path: %q must be an absolute path, such as %s", k.Pods, DefaultKubeletPods)
	}
	return nil
}

// DefaultKubeletPods is the kubelet's default directory of pods.
const DefaultKubeletPods = "/var/lib/kubelet/pods"

// maxPods limits the number of pods, and of volumes per pod, in a search. The kubelet
// runs up to 110 pods by default.
const maxPods = 4096

// Finder returns a Finder that finds the volumes.
func (k Kubelet) Finder(by IdentifyBy) Finder {
	return Finder{
		Source: "kubelet", Name: k.Pods, Interval: DefaultInterval, CloseExited: true,
		Find: func(time.Time) (map[string]Location, error) { return k.find(by) },
	}
}

func (k Kubelet) find(by IdentifyBy) (map[string]Location, error) {
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
			found[filepath.Join(volumes, name)] = k.volume(by, pod, filepath.Join(volumes, name))
		}
	}
	return found, errors.Join(errs...)
}

// volume returns the emptyDir volume of a pod in a directory, relative to that of the pods.
func (k Kubelet) volume(by IdentifyBy, pod, dir string) Location {
	return Location{
		Path: filepath.Join(k.Pods, dir), Holder: drain.Holder{Pod: pod},
		OpenDir: func(name string) (*files.Dir, error) {
			f, err := files.OpenDir(k.Pods, filepath.Join(dir, name))
			if name == "." && errors.Is(err, fs.ErrNotExist) {
				err = errors.Join(errGone, err) // the pod was deleted
			}
			return f, err
		},
		Identify: func(a drain.Agent, _ files.ID, _ time.Time) attributed {
			a.Dir = filepath.Base(dir)
			return by.identify(a, origin{pod: pod})
		},
	}
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
