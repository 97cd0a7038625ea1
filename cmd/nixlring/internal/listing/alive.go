// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package listing

import "github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"

// FindAlive determines for each ring whether its agent is running. It reads /proc at most
// once for all rings, and only if the kernel reports that a ring is open, because the
// process that has it open may be a consumer. If an agent's state is unknown, FindAlive returns which
// processes can't be inspected.
func FindAlive(proc string, list []Entry) (unseen string) {
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
			u := users[list[i].Path]
			if list[i].Alive = u.Alive(attended[i]); list[i].Alive == procs.Unknown && u != nil {
				unseen = u.Unseen()
			}
		}
	}
	return unseen
}
