package listing

import "github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"

// FindAlive finds out of which rings the agent is alive. The processes of the
// system are looked at once for all rings, if at all: when the kernel says that a
// ring is open, a consumer may be the one that has it.
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
