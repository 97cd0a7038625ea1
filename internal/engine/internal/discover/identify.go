// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// IdentifyBy lists the parts of the identity of a discovered agent. An agent that has
// the same identity as one that has exited continues its totals.
type IdentifyBy []string

// The parts of an identity.
const (
	ByAgent     = "agent"     // the path of the ring, as the agent sees it
	ByPod       = "pod"       // the pod's UID and the container's name; without a pod, the container's ID
	ByContainer = "container" // the container's ID
	ByRank      = "rank"      // the resource attribute nixl.local_rank
)

// DefaultIdentifyBy distinguishes agents that have the same name in different pods, and in
// different containers of a pod.
var DefaultIdentifyBy = IdentifyBy{ByPod, ByAgent}

// Check returns an error if the list is empty, repeats a part, or has an unknown one.
func (by IdentifyBy) Check() error {
	if len(by) == 0 {
		return errors.New("identify_by: list at least one of agent, pod, container and rank")
	}
	var errs []error
	for i, part := range by {
		switch {
		case !slices.Contains([]string{ByAgent, ByPod, ByContainer, ByRank}, part):
			errs = append(errs, fmt.Errorf("identify_by: %q must be agent, pod, container or rank", part))
		case slices.Contains(by[:i], part):
			errs = append(errs, fmt.Errorf("identify_by: %s is listed twice", part))
		}
	}
	return errors.Join(errs...)
}

// DefaultAttributes selects the attributes that describe an agent's service.
var DefaultAttributes = []string{"service.*", "deployment.*"}

// origin describes where a ring was found.
type origin struct {
	pod, container string
	containerName  string // in the pod; "" if unknown
	nested         bool   // the container is in another one, with the same pod and name
	unit           string // see [process.Process]; "" for processes of the host that aren't in a sandbox
	resource       []attribute.KeyValue
	process        []attribute.KeyValue // changes when the agent restarts
}

// attributed is what is known about an agent.
type attributed struct {
	drain.Agent
	up      drain.Up // whether a process has its ring mapped
	unknown string   // a part of identify_by that the path of the ring replaces; "" if there is none
}

// identify sets the ID and the attributes of an agent. The pod and the container from
// the kernel or the kubelet replace those from the agent's environment.
func (by IdentifyBy) identify(a drain.Agent, o origin) (got attributed) {
	stable, process := o.resource, o.process
	if o.pod != "" {
		stable = append(stable, attribute.String(semconv.K8SPodUID, o.pod))
	}
	if o.containerName != "" {
		stable = append(stable, attribute.String(semconv.K8SContainerName, o.containerName))
	}
	a.Resource = attribute.NewSet(stable...) // the last value of a key wins
	a.ID, got.unknown = by.id(a, o)
	if o.container != "" {
		id := attribute.String(semconv.ContainerID, o.container)
		if slices.Contains(by, ByContainer) || slices.Contains(by, ByPod) && o.pod == "" {
			a.Resource = attribute.NewSet(append(stable, id)...)
		} else {
			process = append(process, id)
		}
	}
	a.Process = attribute.NewSet(process...)
	got.Agent = a
	return got
}

// id returns the ID of an agent. It contains the path of the ring if by lists
// ByAgent, or if another part of by isn't known, which is also returned.
func (by IdentifyBy) id(a drain.Agent, o origin) (id, unknown string) {
	rank, _ := a.Resource.Value(semconv.LocalRank)
	container := strings.TrimSpace(o.container + " " + o.unit)
	pod := container
	if o.pod != "" {
		if !o.nested {
			container = o.unit
		}
		pod = strings.Join(strings.Fields(o.pod+" "+o.containerName+" "+container), " ")
	}
	var parts []string
	byAgent := slices.Contains(by, ByAgent)
	for _, known := range [][2]string{
		{ByPod, pod}, {ByContainer, strings.TrimSpace(o.container + " " + o.unit)}, {ByRank, rank.String()},
	} {
		switch part, value := known[0], known[1]; {
		case !slices.Contains(by, part):
		case value == "":
			if !byAgent {
				unknown = part
			}
		default:
			parts = append(parts, part+" "+strings.ReplaceAll(value, "\x00", ""))
		}
	}
	if byAgent || unknown != "" { // without other parts, this is the ID of a ring in a configured directory
		parts = append(parts, a.Dir+"/"+a.Name)
	}
	return strings.Join(parts, " "), unknown
}
