// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package listing

import "github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"

// FindAlive determines for each ring whether its agent is running. It reads /proc at most
// once for all rings, and only if the kernel reports that a ring is open, because the
// process that has it open may be a consumer.
func FindAlive(proc string, list []Entry) {
	attended := make([]procs.Attended, len(list))
	var open []string
	for i := range list {
		if !list[i].Ring {
			continue
		}
		attended[i] = procs.Attend(list[i].Path)
		if !attended[i].Settles() {
			open = append(open, list[i].Path)
		}
	}
	users := procs.FS(proc).Users(open...)
	for i := range list {
		if list[i].Ring {
			list[i].Alive = users[list[i].Path].Alive(attended[i])
		}
	}
}
