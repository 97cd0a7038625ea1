package discover

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// machine is a proc file system in a directory, and Places that searches it.
type machine struct {
	*pods
	proc string
}

func newMachine(t *testing.T, by IdentifyBy) *machine {
	t.Helper()
	proc := t.TempDir()
	x := newPods(t, func(c *PlacesConfig) {
		c.Finder = Processes{Proc: proc, EnvAttributes: map[string]string{"LOCAL_RANK": semconv.LocalRank}}.Finder(by)
	})
	m := &machine{pods: x, proc: proc}
	m.start(proc1{pid: 1, namespace: "mnt:[1]", exe: "/sbin/init"})
	if err := os.Symlink("4194304", filepath.Join(proc, "self")); err != nil {
		t.Fatal(err)
	}
	return m
}

// proc1 is a process.
type proc1 struct {
	pid       int
	namespace string
	exe       string
	cgroup    string
	env       []string
	maps      string // a path that it has mapped
}

func (m *machine) start(p proc1) {
	m.t.Helper()
	dir := filepath.Join(m.proc, fmt.Sprint(p.pid))
	cgroup := p.cgroup
	if cgroup == "" {
		cgroup = "/user.slice"
	}
	maps := ""
	if p.maps != "" {
		maps = fmt.Sprintf("7f0000000000-7f0000001000 rw-s 00000000 00:01 99999999                   %s\n", p.maps)
	}
	errs := []error{os.MkdirAll(filepath.Join(dir, "ns"), 0o750)}
	for name, text := range map[string]string{
		"stat":    fmt.Sprintf("%d (agent) S 1 %s", p.pid, strings.Repeat("0 ", 17)) + fmt.Sprint(p.pid*100) + " 0\n",
		"status":  fmt.Sprintf("Name:\tagent\nNSpid:\t%d\t1\n", p.pid),
		"statm":   "100 100 100 1 0 100 0\n",
		"cgroup":  "0::" + cgroup + "\n",
		"environ": strings.Join(append(p.env, ""), "\x00"),
		"maps":    maps,
	} {
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for name, to := range map[string]string{"ns/mnt": p.namespace, "root": "/", "cwd": "/", "exe": p.exe} {
		errs = append(errs, os.Symlink(to, filepath.Join(dir, name)))
	}
	if err := errors.Join(errs...); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) exit(pid int) {
	m.t.Helper()
	if err := os.RemoveAll(filepath.Join(m.proc, fmt.Sprint(pid))); err != nil {
		m.t.Fatal(err)
	}
}

const podCgroup = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod%s.slice/cri-containerd-%s.scope"

var (
	uid1, uid2 = "0a1b2c3d-0000-4000-8000-000000000001", "0a1b2c3d-0000-4000-8000-000000000002"
	box1, box2 = strings.Repeat("1", 64), strings.Repeat("2", 64)
)

func inPod(uid, box string) string {
	return fmt.Sprintf(podCgroup, strings.ReplaceAll(uid, "-", "_"), box)
}

// agentIn creates a ring in a directory and returns the environment of its process.
func (m *machine) agentIn(dir, name string, more ...string) (*ringbuf.Writer, []string) {
	m.t.Helper()
	if err := os.MkdirAll(dir, 0o750); err != nil {
		m.t.Fatal(err)
	}
	w, err := ringbuf.Create(filepath.Join(dir, name), ringbuf.V4, 8)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = w.Close() })
	return w, append(more, "NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_DIR="+dir)
}

func TestAgentsOfProcessesAreFoundWithTheirPods(t *testing.T) {
	x := newMachine(t, DefaultIdentifyBy)
	tmp := t.TempDir()
	_, env1 := x.agentIn(filepath.Join(tmp, "1"), "decode", "LOCAL_RANK=0", "OTEL_SERVICE_NAME=llm",
		"SECRET=x", "OTEL_RESOURCE_ATTRIBUTES=team=a,k8s.pod.uid="+uid2+",service.instance.id=y")
	_, env2 := x.agentIn(filepath.Join(tmp, "2"), "decode", "LOCAL_RANK=1")
	x.start(proc1{pid: 10, namespace: "mnt:[10]", exe: "/usr/bin/python3", cgroup: inPod(uid1, box1), env: env1})
	x.start(proc1{pid: 20, namespace: "mnt:[20]", exe: "/usr/bin/python3", cgroup: inPod(uid2, box2), env: env2})
	x.look()
	got := make(map[string]map[string]string)
	for id, a := range x.opened() {
		got[id] = map[string]string{"path": a.Path}
		for _, kv := range a.Resource.ToSlice() {
			got[id][string(kv.Key)] = kv.Value.String()
		}
	}
	want := map[string]map[string]string{
		"pod " + uid1 + " " + tmp + "/1/decode": {
			"path": x.proc + "/10/root" + tmp + "/1/decode", "k8s.pod.uid": uid1, "container.id": box1, "process.pid": "10",
			"process.executable.name": "python3", "nixl.local_rank": "0", "service.name": "llm", "team": "a",
		},
		"pod " + uid2 + " " + tmp + "/2/decode": {
			"path": x.proc + "/20/root" + tmp + "/2/decode", "k8s.pod.uid": uid2, "container.id": box2, "process.pid": "20",
			"process.executable.name": "python3", "nixl.local_rank": "1",
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("agents (-want +got):\n%s", d)
	}
}

// Of the processes of a container, the one that has the ring mapped is the agent's.
func TestRanksOfAContainerAreToldApart(t *testing.T) {
	x := newMachine(t, IdentifyBy{ByPod, ByRank})
	dir := filepath.Join(t.TempDir(), "shm")
	for rank := range 3 {
		name := fmt.Sprintf("agent-%d-f81d4fae", rank)
		_, env := x.agentIn(dir, name, fmt.Sprintf("LOCAL_RANK=%d", rank))
		x.start(proc1{pid: 10 + rank, namespace: "mnt:[10]", exe: "/usr/bin/python3", cgroup: inPod(uid1, box1), env: env, maps: dir + "/" + name})
	}
	x.look()
	got := make(map[string]string)
	for id, a := range x.opened() {
		got[id] = a.Name
	}
	want := map[string]string{
		"pod " + uid1 + " rank 0": "agent-0-f81d4fae", "pod " + uid1 + " rank 1": "agent-1-f81d4fae", "pod " + uid1 + " rank 2": "agent-2-f81d4fae",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("agents (-want +got):\n%s", d)
	}
}

func TestContainerThatIsRemovedLeavesNothing(t *testing.T) {
	x := newMachine(t, DefaultIdentifyBy)
	dir := filepath.Join(t.TempDir(), "shm")
	w, env := x.agentIn(dir, "decode")
	x.start(proc1{pid: 10, namespace: "mnt:[10]", exe: "/usr/bin/python3", cgroup: inPod(uid1, box1), env: env})
	x.start(proc1{pid: 11, namespace: "mnt:[10]", exe: "/usr/bin/python3", cgroup: inPod(uid1, box1), env: env})
	x.look()
	push(t, w, 3)
	x.exit(10) // the other process keeps the container
	x.look()
	if s := x.places.State(); s.Open != 1 || s.Missing != nil {
		t.Fatalf("state is %+v while a process is left", s)
	}
	x.exit(11)
	x.look()
	gone := await(x.owner, func(drain.Gone) bool { return true })
	if n := x.owner.drain()["decode"]; n != 3 {
		t.Errorf("counted %d events, want 3", n)
	}
	x.owner.retire(x.opened()[gone.ID].Path)
	for len(x.places.directories(true)) > 0 {
		x.look()
	}
	if r := x.places.cfg.Rings; len(r.ids) != 0 || len(r.paths) != 0 {
		t.Errorf("counted still: agents %v, rings %v", r.ids, r.paths)
	}
}

// A shared volume shows one ring to two containers.
func TestRingOfTwoContainersIsOpenedOnce(t *testing.T) {
	x := newMachine(t, DefaultIdentifyBy)
	dir := filepath.Join(t.TempDir(), "shm")
	_, env := x.agentIn(dir, "decode")
	x.start(proc1{pid: 10, namespace: "mnt:[10]", exe: "/usr/bin/python3", cgroup: inPod(uid1, box1), env: env})
	x.start(proc1{pid: 20, namespace: "mnt:[20]", exe: "/usr/bin/python3", cgroup: inPod(uid1, box2), env: env})
	x.look()
	if got := x.opened(); len(got) != 1 || x.places.State().Open != 1 {
		t.Errorf("opened %v", got)
	}
}
