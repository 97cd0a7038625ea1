// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/processtest"
	"github.com/nixl-otel/nixl-otel/internal/scripttest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// machine is a proc file system in a directory, and a Watcher that searches it. It runs a script like that of a
// scenario. What is seen are the agents that were opened or attributed, with the attributes of their resources and
// processes, and the number of open rings.
type machine struct {
	*pods
	host  *processtest.Host // nil if the kubelet's directory is searched
	rings map[string]*ringbuf.Writer
	names *strings.Replacer
	full  bool // names of attributes and paths are seen
	seen  []string
}

func newMachine(t *testing.T, by IdentifyBy) *machine {
	t.Helper()
	host := processtest.New(t)
	x := newPods(t, func(string) Finder {
		return Processes{
			Proc: host.Proc, Interval: time.Hour, EnvAttributes: map[string]string{"LOCAL_RANK": semconv.LocalRank}, Attributes: []string{"*"},
		}.Finder(by)
	})
	return &machine{pods: x, host: host, rings: make(map[string]*ringbuf.Writer), names: strings.NewReplacer(
		x.dir, "", host.Proc, "", uid1, "A", uid2, "B", container1, "1", container2, "2")}
}

// newKubelet returns a machine where the kubelet's directory is searched. The names of rings are pod/volume/name.
func newKubelet(t *testing.T, volumes ...string) *machine {
	t.Helper()
	x := newPods(t, func(dir string) Finder { return Kubelet{Pods: dir, Volumes: volumes}.Finder(DefaultIdentifyBy) })
	return &machine{pods: x, rings: make(map[string]*ringbuf.Writer), names: strings.NewReplacer(x.dir, "")}
}

// path returns the path of a ring, of a volume or of a pod.
func (m *machine) path(name string) string {
	if pod, rest, ok := strings.Cut(name, "/"); ok && pod != ".." && m.host == nil {
		name = filepath.Join(pod, "volumes", "kubernetes.io~empty-dir", rest)
	}
	return m.fixture.path(name)
}

var (
	uid1, uid2             = "0a1b2c3d-0000-4000-8000-000000000001", "0a1b2c3d-0000-4000-8000-000000000002"
	container1, container2 = strings.Repeat("1", 64), strings.Repeat("2", 64)
)

// inPod returns a process of the first container of the first pod.
func inPod(pid int, dir string, env ...string) processtest.Process {
	return processtest.Process{
		PID: pid, Namespace: "mnt:[10]", Cgroup: processtest.InPod(uid1, container1),
		Env: append(env, "NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_DIR="+dir),
	}
}

func (m *machine) run(command []string) {
	m.t.Helper()
	pid, _ := strconv.Atoi(append(command, "")[1])
	name := append(command, "")[1]
	switch command[0] {
	case "start": // PID, pod, box=container, maps=ring, and environment variables
		dir := m.path(command[2])
		must.OK(m.t, os.MkdirAll(dir, 0o750))
		p := inPod(pid, dir)
		if command[2] == "B" {
			p.Namespace, p.Cgroup = "mnt:[20]", processtest.InPod(uid2, container2)
		}
		for _, arg := range command[3:] {
			if ring, ok := strings.CutPrefix(arg, "maps="); ok {
				p.Maps = m.path(ring)
			} else if arg == "box=2" {
				p.Namespace, p.Cgroup = "mnt:[12]", processtest.InPod(uid1, container2)
			} else {
				p.Env = append(p.Env, strings.ReplaceAll(arg, "=B", "="+uid2))
			}
		}
		m.host.Start(p)
	case "full":
		m.full = true
	case "map": // PID, ring: without a change of statm
		line := fmt.Sprintf("7f0000000000-7f0000001000 rw-s 00000000 00:01 9                   %s\n", m.path(command[2]))
		must.OK(m.t, os.WriteFile(m.host.Path(pid, "maps"), []byte(line), 0o600))
	case "quit":
		m.host.Exit(pid)
	case "ring":
		path := m.path(name)
		must.OK(m.t, os.MkdirAll(filepath.Dir(path), 0o750))
		w, err := ringbuf.Create(path, ringbuf.V4, 8)
		must.OK(m.t, err)
		m.t.Cleanup(func() { _ = w.Close() })
		m.rings[name] = w
	case "rm":
		must.OK(m.t, os.RemoveAll(m.path(name)))
	case "mv":
		must.OK(m.t, os.Rename(m.path(name), m.path(command[2])))
	case "symlink":
		must.OK(m.t, os.Symlink(m.path(name), m.path(command[2])))
	case "push":
		push(m.t, m.rings[name], 3)
	case "exit":
		must.OK(m.t, m.rings[name].Close())
	case "drain":
		m.seen = append(m.seen, fmt.Sprint("drained ", m.owner.drain()))
	case "search":
		m.look()
	case "walk", "attribute": // before the next search
		do := map[string]func(*Directory){"walk": (*Directory).refresh, "attribute": (*Directory).attribute}[command[0]]
		m.watcher.all(func(d *Directory, done func()) { d.request(func() { do(d) }, done) })
	case "close": // wait until the rings of exited agents are closed
		must.EventuallyTrue(m.t, "closed rings", func() bool {
			m.look()
			m.owner.drain()
			return m.watcher.State().Open == 0
		})
	case "forget": // wait until the removed directories are forgotten
		must.EventuallyTrue(m.t, "end of their goroutines", func() bool {
			m.look()
			m.owner.drain()
			return len(m.watcher.directories()) == 0
		})
	default:
		m.t.Fatalf("unknown command %q", command)
	}
}

func (m *machine) see() string {
	list := m.seen
	m.seen = nil
	for id, a := range m.opened() {
		if a.Unattributed {
			id = "sought " + id
		}
		text := fmt.Sprintf("%s [%s] [%s]", id, a.Resource.Encoded(attribute.DefaultEncoder()), a.Process.Encoded(attribute.DefaultEncoder()))
		if text = m.names.Replace(text); m.full {
			text += " at " + m.names.Replace(a.Path)
		} else {
			text = strings.NewReplacer("k8s.pod.uid=", "", "container.id=", "", "process.executable.name=python3,process.pid=", "").Replace(text)
		}
		list = append(list, text)
	}
	slices.Sort(list)
	if s := m.watcher.State(); s.Open > 0 || len(s.Missing) > 0 {
		list = append(list, m.names.Replace(strings.TrimSuffix(fmt.Sprintf("%d open %v", s.Open, s.Missing), " []")))
	}
	for _, n := range m.notices {
		if n.Kind == notice.DiscoveryFailed || n.Kind == notice.DiscoveryWorks {
			list = append(list, "log "+n.Text)
		}
	}
	m.notices = nil
	return strings.Join(list, ", ")
}

func TestAgentsOfProcesses(t *testing.T) {
	for name, tt := range map[string]struct {
		by     IdentifyBy
		script string
	}{
		"agents have the attributes of their pods and environments": {DefaultIdentifyBy, `
			full; start 10 A maps=A/a LOCAL_RANK=0 OTEL_SERVICE_NAME=llm SECRET=x OTEL_RESOURCE_ATTRIBUTES=team=a,k8s.namespace.name=other,k8s.pod.uid=B,service.instance.id=y
			start 20 B maps=B/a LOCAL_RANK=1; ring A/a; ring B/a; search
			=> pod A /A/a [k8s.pod.uid=A,nixl.local_rank=0,service.name=llm,team=a] [container.id=1,process.executable.name=python3,process.pid=10] at /10/root/A/a, pod B /B/a [k8s.pod.uid=B,nixl.local_rank=1] [container.id=2,process.executable.name=python3,process.pid=20] at /20/root/B/a, 2 open`},
		"the process that has the ring mapped is the agent's": {IdentifyBy{ByPod, ByRank}, `
			start 10 A maps=A/a LOCAL_RANK=0; start 11 A maps=A/b LOCAL_RANK=1; ring A/a; ring A/b; ring A/left; search
			=> pod A /A/left [A] [1], pod A rank 0 [A,nixl.local_rank=0] [1,10], pod A rank 1 [A,nixl.local_rank=1] [1,11], 3 open`},
		"an earlier process, of another rank, may have left a ring": {DefaultIdentifyBy, `
			start 10 A OTEL_SERVICE_NAME=llm LOCAL_RANK=3; ring A/left; search
			=> pod A /A/left [A,service.name=llm] [1,10], 1 open`},
		"one of several processes may have left a ring": {DefaultIdentifyBy, `
			start 10 A OTEL_SERVICE_NAME=llm; start 11 A OTEL_SERVICE_NAME=llm; ring A/left; search
			=> pod A /A/left [A] [1], 1 open`},
		"the ring of a new worker is drained at once, and exported once its process is known": {DefaultIdentifyBy, `
			start 10 A; search                            =>
			start 11 A maps=A/a LOCAL_RANK=1; ring A/a; push A/a; walk; drain
			                                              => drained map[], sought pod A /A/a [A] [1,10], 1 open
			attribute                                     => 1 open
			exit A/a; search; drain                       => drained map[a:3], pod A /A/a [A,nixl.local_rank=1] [1,11], 1 open`},
		"the ring of a container that is removed before the next search has the attributes of its pod": {DefaultIdentifyBy, `
			start 10 A; search; ring A/a; walk            => sought pod A /A/a [A] [1,10], 1 open
			quit 10; search                               => pod A /A/a [A] [1,10], 1 open`},
		"a process may map a ring at any time, but its mappings are read rarely unless its ring is sought": {DefaultIdentifyBy, `
			start 10 A; start 11 A; search; ring A/a; map 10 A/a; search
			                                              => pod A /A/a [A] [1,10], 1 open`},
		"a removed container leaves no state": {DefaultIdentifyBy, `
			start 10 A; start 11 A; ring A/a; push A/a; search
			                                              => pod A /A/a [A] [1], 1 open
			quit 10; search                               => 1 open
			exit A/a; quit 11; search; drain; forget      => drained map[a:3]`},
		"two containers may share a volume": {DefaultIdentifyBy, `
			start 10 A; ring A/a; search                  => pod A /A/a [A] [1,10], 1 open
			start 20 A box=2; search                      => 1 open`},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, tt.by)
			scripttest.Run(t, tt.script, m.run, m.see)
		})
	}
}

func TestAgentsInVolumes(t *testing.T) {
	for name, script := range map[string]string{
		"volumes that match are found": `
			ring A/shm/a; ring B/shm/a; ring B/rings/b; ring B/scratch/c; search
			                          => pod A shm/a [A] [], pod B rings/b [B] [], pod B shm/a [B] [], 3 open`,
		// An open ring prevents the removal of the volume, and of its pod.
		"the ring of an exited agent is closed until the agent restarts": `
			ring A/shm/a; push A/shm/a; search; search => pod A shm/a [A] [], 1 open
			exit A/shm/a; close       =>
			ring A/shm/a; search      => pod A shm/a [A] [], 1 open`,
		"a deleted pod leaves no state": `
			ring A/shm/a; push A/shm/a; search => pod A shm/a [A] [], 1 open
			exit A/shm/a; rm A; search; drain; forget => drained map[a:3]
			ring B/shm/a; search => pod B shm/a [B] [], 1 open`,
		"a failed search keeps the directories": `
			ring A/shm/a; search      => pod A shm/a [A] [], 1 open
			mv . ../away; search; search => 1 open [list the pods of this node: open : no such file or directory], log discovery of agents is incomplete
			mv ../away .; search      => 1 open, log discovery of agents is complete again`,
		"links aren't followed": `
			ring A/shm/a; ring ../out/b; symlink ../out A/shm/dir; symlink ../out/b A/shm/file; symlink ../out A/rings; search
			                          => pod A shm/a [A] [], 1 open`,
	} {
		t.Run(name, func(t *testing.T) {
			m := newKubelet(t, "shm", "ring*")
			scripttest.Run(t, script, m.run, m.see)
		})
	}
}

// hang starts a process whose environment can't be read until the test ends.
func hang(h *processtest.Host) {
	h.Start(inPod(12, "/"))
	environ := h.Path(12, "environ")
	must.OK(h.TB, errors.Join(os.Remove(environ), syscall.Mkfifo(environ, 0o600)))
	h.TB.Cleanup(func() {
		f, err := os.OpenFile(environ, os.O_RDWR, 0)
		must.OK(h.TB, errors.Join(err, f.Close()))
	})
}

// What the last search has found decides, unless it is too old, or was cut short.
func TestIdentifyReportsWhetherARingIsMapped(t *testing.T) {
	for name, tc := range map[string]struct {
		maps  bool                    // a process maps the ring when it is found
		then  func(*processtest.Host) // what happens after the first search
		again bool                    // there is another search
		by    IdentifyBy
		want  string
	}{
		"mapped":                           {maps: true, want: "pod, up"},
		"its process has exited":           {maps: true, then: func(h *processtest.Host) { h.Exit(11) }, want: "pod, sought"},
		"its process has exited, searched": {maps: true, then: func(h *processtest.Host) { h.Exit(11) }, again: true, want: "pod, exited"},
		"not mapped":                       {want: "pod, sought"},
		"not mapped, searched":             {again: true, want: "pod, exited"},
		"a process hangs":                  {then: hang, again: true, want: "pod, sought"},
		"by rank":                          {by: IdentifyBy{ByPod, ByRank}, want: ", sought"},
		"by rank, searched":                {by: IdentifyBy{ByPod, ByRank}, again: true, want: "pod, exited"},
	} {
		t.Run(name, func(t *testing.T) {
			host, dir := processtest.New(t), t.TempDir()
			w, err := ringbuf.Create(filepath.Join(dir, "agent"), ringbuf.V4, 8)
			must.OK(t, err)
			defer w.Close()
			for pid := 10; pid <= 11; pid++ {
				p := inPod(pid, dir)
				if pid == 11 && tc.maps {
					p.Maps = dir + "/agent"
				}
				host.Start(p)
			}
			by := tc.by
			if by == nil {
				by = DefaultIdentifyBy
			}
			finder := Processes{Proc: host.Proc}.Finder(by)
			search := func() (l Location) {
				found, err := finder.Find(time.Now())
				must.OK(t, err)
				for _, l = range found {
					return l
				}
				t.Fatal("nothing found")
				return l
			}
			l := search()
			ring, err := ringbuf.OpenReader(w.Path(), ringbuf.Observe)
			must.OK(t, err)
			defer ring.Close()
			since := time.Now()
			if tc.then != nil {
				tc.then(host)
			}
			if tc.again {
				l = search()
			}
			a, up := l.Identify(drain.Agent{Name: "agent", Unattributed: true}, ring, since)
			part, _, _ := strings.Cut(a.ID, " ")
			got := part + ", " + map[drain.Up]string{drain.UpYes: "up", drain.UpNo: "exited"}[up]
			if a.Unattributed {
				got += "sought"
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSearchWithoutProcFindsNothing(t *testing.T) {
	found, err := Processes{Proc: t.TempDir() + "/none"}.Finder(DefaultIdentifyBy).Find(time.Now())
	if found != nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("found %v, error %v", found, err)
	}
}

// Each container has limits and identities of its own. Directories of the host have the rings of many users.
func TestHolderIsTheContainerOrTheDirectoryOfTheHost(t *testing.T) {
	host := processtest.New(t)
	env := func(dir string) []string { return []string{"NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_DIR=" + dir} }
	host.Start(processtest.Process{PID: 10, Namespace: "mnt:[1]", Env: env("/host")})
	host.Start(processtest.Process{PID: 11, Namespace: "mnt:[11]", Env: env("/sandbox")})
	host.Start(processtest.Process{PID: 12, Namespace: "mnt:[12]", Cgroup: "/docker/" + container1, Env: env("/container")})
	host.Start(processtest.Process{PID: 13, Namespace: "mnt:[13]", Cgroup: processtest.InPod(uid1, container2), Env: env("/pod")})
	found, err := Processes{Proc: host.Proc}.Finder(DefaultIdentifyBy).Find(time.Now())
	must.OK(t, err)
	got := make(map[string]drain.Holder)
	for _, l := range found {
		got[l.IdentifyStore(drain.Agent{Name: "a"}, 0).ID] = l.Holder
	}
	want := map[string]drain.Holder{
		"/host/a": {Place: "/host", Shared: true}, "pod mnt:[11] / /sandbox/a": {Place: "mnt:[11] /"},
		"pod " + container1 + " /container/a": {Container: container1}, "pod " + uid1 + " /pod/a": {Pod: uid1, Container: container2},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The process of a store is that with the PID in its own namespace.
func TestStoresAreIdentifiedByTheirProcess(t *testing.T) {
	host := processtest.New(t)
	for pid, env := range map[int][]string{10: {"LOCAL_RANK=3"}, 11: nil} {
		p := inPod(pid, "/rings", append(env, "NIXL_TELEMETRY_EXPORTER=prometheus_mp", "NIXL_TELEMETRY_MULTIPROC_DIR=/stores")...)
		p.NSPID = pid - 3
		host.Start(p)
	}
	finder := Processes{Proc: host.Proc, EnvAttributes: map[string]string{"LOCAL_RANK": semconv.LocalRank}}.Finder(DefaultIdentifyBy)
	found, err := finder.Find(time.Now())
	must.OK(t, err)
	got := make(map[int64]string)
	for _, l := range found {
		for _, pid := range []int64{7, 8, 99} { // 99 has exited, or is in another namespace
			a := l.IdentifyStore(drain.Agent{Name: "decode"}, pid)
			rank, _ := a.Resource.Value(semconv.LocalRank)
			onHost, _ := a.Process.Value(semconv.ProcessPID)
			got[pid] += fmt.Sprintf("%s, process %d, rank %s", a.ID, onHost.AsInt64(), rank.AsString())
		}
	}
	want := map[int64]string{
		7:  "pod " + uid1 + " /stores/decode, process 10, rank 3",
		8:  "pod " + uid1 + " /stores/decode, process 11, rank ",
		99: "pod " + uid1 + " /stores/decode, process 0, rank ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("agents by PID (-want +got):\n%s", diff)
	}
}
