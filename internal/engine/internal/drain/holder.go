// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import "fmt"

// Holder is the container, the pod or the directory that holds an agent's ring, according
// to the kernel or the kubelet. Everything in it may be under the same control, so limits
// apply to holders.
type Holder struct {
	Pod       string // UID; "" if unknown
	Container string // ID; "" if unknown
	// Place is a mount namespace or a directory, if neither is known.
	Place string
	// Shared marks a directory that agents of several containers may share.
	Shared bool
}

// Isolated reports whether the holder is a container or a pod, or looks like one. Everything
// else is configured.
func (h Holder) Isolated() bool { return !h.Shared && h != (Holder{}) }

// shortID is the length of a container's ID as container runtimes print it.
const shortID = 12

// String returns the name of the holder for messages.
func (h Holder) String() string {
	container := h.Container
	if len(container) > shortID {
		container = container[:shortID]
	}
	switch {
	case h.Pod != "" && container != "":
		return fmt.Sprintf("container %s of pod %s", container, h.Pod)
	case container != "":
		return "container " + container
	case h.Pod != "":
		return "pod " + h.Pod
	case h.Shared:
		return "directory " + h.Place
	default:
		return "mount namespace " + h.Place
	}
}
