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
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/processtest"
	"github.com/nixl-otel/nixl-otel/internal/lab/scripttest"
	"github.com/nixl-otel/nixl-otel/internal/lab/storetest"
	"github.com/nixl-otel/nixl-otel/internal/notice"
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
			Proc: host.Proc, Interval: time.Hour, EnvAttributes: map[string]string{"CHOSEN": semconv.LocalRank}, Attributes: []string{"*"},
			StaleAfter: time.Hour,
		}.Finder(by)
	})
	x.look() // otherwise, the first search may come at any time
	return &machine{pods: x, host: host, rings: make(map[string]*ringbuf.Writer), names: strings.NewReplacer(
		x.dir, "", host.Proc, "", uid1, "A", uid2, "B", container1, "1", container2, "2")}
}

// newKubelet returns a machine where the kubelet's directory is searched. The names of rings are pod/volume/name.
func newKubelet(t *testing.T) *machine {
	t.Helper()
	x := newPods(t, func(dir string) Finder { return Kubelet{Pods: dir}.Finder(DefaultIdentifyBy) })
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
	case "start": // PID, pod, box=container, dir=pod, maps=ring, title, and environment variables
		dir := m.path(command[2])
		for _, arg := range command[3:] {
			if other, ok := strings.CutPrefix(arg, "dir="); ok {
				dir = m.path(other)
			}
		}
		must.OK(m.t, os.MkdirAll(dir, 0o750))
		p := inPod(pid, dir)
		if command[2] == "B" {
			p.Namespace, p.Cgroup = "mnt:[20]", processtest.InPod(uid2, container2)
		}
		m.host.Start(m.with(p, command[3:]))
	case "plain": // a process of the first container whose environment doesn't enable NIXL
		p := inPod(pid, "")
		p.Env = nil
		m.host.Start(m.with(p, command[2:]))
	case "erased": // PID, parent, ring, title
		parent, _ := strconv.Atoi(command[2])
		p := inPod(pid, "")
		p.Parent, p.Env, p.Maps, p.Title = parent, []string{"\x00\x00"}, m.path(command[3]), command[4]
		m.host.Start(p)
	case "wait":
		d, err := time.ParseDuration(name)
		must.OK(m.t, err)
		m.advance(d)
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
	case "walk": // before the next search
		m.watcher.all(func(d *Directory, done func()) { d.request(d.refresh, done) })
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

// with returns a process with properties.
func (m *machine) with(p processtest.Process, properties []string) processtest.Process {
	for _, property := range properties {
		switch name, value, _ := strings.Cut(property, "="); name {
		case "maps":
			p.Maps = m.path(value)
		case "title":
			p.Title = value
		case "box":
			if p.Namespace, p.Cgroup = "mnt:[12]", processtest.InPod(uid1, container2); value != "2" { // its own process only
				p.Namespace, p.Cgroup, p.Env = "mnt:[10]", processtest.InPod(uid1, container1), nil
			}
		case "root": // dir is below it
			p.Root = m.path(value)
			p.Env[len(p.Env)-1] = strings.Replace(p.Env[len(p.Env)-1], p.Root, "", 1)
		case "dir":
		default:
			p.Env = append(p.Env, strings.ReplaceAll(property, "=B", "="+uid2))
		}
	}
	return p
}

func (m *machine) see() string {
	list := m.seen
	m.seen = nil
	for id, a := range m.opened() {
		switch a.Attribution {
		case drain.Sought:
			id = "sought " + id
		case drain.Left:
			id = "left " + id
		case drain.Partly:
			id = "partly " + id
		case drain.Known:
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
		switch n.Kind {
		case notice.DiscoveryFailed, notice.DiscoveryWorks:
			list = append(list, "log "+n.Text)
		case notice.IdentityUnknown:
			part, _, _ := strings.Cut(n.Text, " of an agent isn't known")
			list = append(list, part+" is unknown")
		}
	}
	m.notices = nil
	return strings.Join(list, ", ")
}

func TestAgentsOfProcesses(t *testing.T) {
	byRank := IdentifyBy{ByPod, ByRank}
	for name, tt := range map[string]struct {
		by     IdentifyBy
		script string
	}{
		"agents have the attributes of their pods and environments": {DefaultIdentifyBy, `
			full; start 10 A maps=A/a LOCAL_RANK=0 OTEL_SERVICE_NAME=llm SECRET=x OTEL_RESOURCE_ATTRIBUTES=team=a,k8s.namespace.name=other,k8s.pod.uid=B,service.instance.id=y
			start 20 B maps=B/a LOCAL_RANK=1; ring A/a; ring B/a; search
			=> pod A /A/a [k8s.pod.uid=A,nixl.local_rank=0,service.name=llm,team=a] [container.id=1,process.executable.name=python3,process.pid=10] at /10/root/A/a, pod B /B/a [k8s.pod.uid=B,nixl.local_rank=1] [container.id=2,process.executable.name=python3,process.pid=20] at /20/root/B/a, 2 open`},
		"the process that has the ring mapped is the agent's": {byRank, `
			start 10 A maps=A/a LOCAL_RANK=0; start 11 A maps=A/b LOCAL_RANK=1; ring A/a; ring A/b; ring A/left; search
			=> left pod A /A/left [A] [1], pod A rank 0 [A,nixl.local_rank=0] [1,10], pod A rank 1 [A,nixl.local_rank=1] [1,11], 3 open, rank is unknown`},
		"a worker has its rank in its title": {byRank, `
			start 10 A maps=A/a title=VLLM::Worker_TP3; ring A/a; search => pod A rank 3 [A,nixl.local_rank=3] [1,10], 1 open`},
		"a chosen variable comes before LOCAL_RANK, that before the title, and all before MPI": {DefaultIdentifyBy, `
			start 10 A maps=A/a title=VLLM::Worker_TP3 LOCAL_RANK=7 SLURM_LOCALID=5; start 11 A maps=A/b title=VLLM::Worker_TP4 SLURM_LOCALID=5
			start 12 A maps=A/c SLURM_LOCALID=5; start 15 A maps=A/f LOCAL_RANK=7 CHOSEN=8; start 13 A maps=A/d PMI_LOCAL_RANK=6 OMPI_COMM_WORLD_LOCAL_RANK=2; start 14 A maps=A/e LOCAL_RANK=
			ring A/a; ring A/b; ring A/c; ring A/d; ring A/e; ring A/f; search
			=> pod A /A/a [A,nixl.local_rank=7] [1,10], pod A /A/b [A,nixl.local_rank=4] [1,11], pod A /A/c [A,nixl.local_rank=5] [1,12], pod A /A/d [A,nixl.local_rank=2] [1,13], pod A /A/e [A] [1,14], pod A /A/f [A,nixl.local_rank=8] [1,15], 6 open`},
		"an environment that was erased is the parent's, except for the rank in the title": {DefaultIdentifyBy, `
			start 10 A OTEL_SERVICE_NAME=llm LOCAL_RANK=0; erased 11 10 A/a VLLM::Worker_TP1; ring A/a; search
			=> pod A /A/a [A,nixl.local_rank=1,service.name=llm] [1,11], 1 open`},
		"nothing is known of an environment that was erased": {DefaultIdentifyBy, `
			erased 11 1 A/a VLLM::Worker_TP1; ring A/a; search => partly pod A /A/a [A,nixl.local_rank=1] [1,11], 1 open`},
		"an earlier process, of another rank, may have left a ring": {DefaultIdentifyBy, `
			start 10 A OTEL_SERVICE_NAME=llm LOCAL_RANK=3; ring A/left; search
			=> left pod A /A/left [A,service.name=llm] [1], 1 open`},
		"one of several processes may have left a ring": {DefaultIdentifyBy, `
			start 10 A OTEL_SERVICE_NAME=llm OTEL_RESOURCE_ATTRIBUTES=a=1; start 11 A OTEL_SERVICE_NAME=llm OTEL_RESOURCE_ATTRIBUTES=a=2; ring A/left; search
			=> left pod A /A/left [A,service.name=llm] [1], 1 open`},
		"the ring of a new worker is drained at once, and exported once its process is known": {DefaultIdentifyBy, `
			start 10 A; search                            =>
			start 11 A maps=A/a LOCAL_RANK=1; ring A/a; push A/a; walk; drain
			                                              => drained map[], sought pod A /A/a [A] [1], 1 open
			exit A/a; search; drain                       => drained map[a:3], pod A /A/a [A,nixl.local_rank=1] [1,11], 1 open`},
		"so is one whose identity depends on the process": {byRank, `
			start 10 A LOCAL_RANK=0; search               =>
			start 11 A maps=A/a LOCAL_RANK=1; ring A/a; push A/a; walk; push A/a; drain
			                                              => drained map[], sought pod A /A/a [A] [1], 1 open
			search; drain                                 => drained map[a:6], pod A rank 1 [A,nixl.local_rank=1] [1,11], 1 open`},
		"a restarted worker continues the totals of its rank": {byRank, `
			start 10 A maps=A/x LOCAL_RANK=0; ring A/x; push A/x; search; drain
			                                              => drained map[x:3], pod A rank 0 [A,nixl.local_rank=0] [1,10], 1 open
			exit A/x; quit 10; start 11 A maps=A/y LOCAL_RANK=0; ring A/y; push A/y; walk; drain; search; drain
			                                              => drained map[x:3], drained map[y:6], pod A rank 0 [A,nixl.local_rank=0] [1,11], 1 open`},
		"the ring of a container that is removed before the next search has the attributes of its pod": {DefaultIdentifyBy, `
			start 10 A; search; ring A/a; walk            => sought pod A /A/a [A] [1], 1 open
			quit 10; search                               => left pod A /A/a [A] [1], 1 open`},
		"a process may map a ring at any time, but its mappings are read rarely unless its ring is sought": {DefaultIdentifyBy, `
			start 10 A; start 11 A; search; ring A/a; map 10 A/a; search
			                                              => pod A /A/a [A] [1,10], 1 open`},
		"the environment of the process may have come too late": {DefaultIdentifyBy, `
			start 10 A OTEL_SERVICE_NAME=other LOCAL_RANK=0; plain 11 LOCAL_RANK=1; search =>
			ring A/a; plain 11 LOCAL_RANK=1 maps=A/a; search => pod A /A/a [A,nixl.local_rank=1] [1,11], 1 open`},
		"another process has the ring mapped after a restart": {DefaultIdentifyBy, `
			start 10 A maps=A/a OTEL_SERVICE_NAME=a; ring A/a; search => pod A /A/a [A,service.name=a] [1,10], 1 open
			quit 10; start 11 A maps=A/a OTEL_SERVICE_NAME=b; search => pod A /A/a [A,service.name=b] [1,11], 1 open`},
		"what was known about the process stays": {DefaultIdentifyBy, `
			start 10 A maps=A/a LOCAL_RANK=0; start 11 A; ring A/a; search => pod A /A/a [A,nixl.local_rank=0] [1,10], 1 open
			quit 10; search; search                       => 1 open`},
		"a removed container leaves no state": {DefaultIdentifyBy, `
			start 10 A; start 11 A; ring A/a; push A/a; search
			                                              => left pod A /A/a [A] [1], 1 open
			quit 10; search                               => 1 open
			exit A/a; quit 11; search; drain; forget      => drained map[a:3]`},
		"the containers of a pod may share a volume": {DefaultIdentifyBy, `
			start 10 A OTEL_SERVICE_NAME=a; search        =>
			start 12 A box=2 maps=A/a OTEL_SERVICE_NAME=b; ring A/a; push A/a; walk; drain
			                                              => drained map[], sought pod A /A/a [A,service.name=a] [1], 1 open
			search; drain                                 => drained map[a:3], pod A /A/a [A,service.name=b] [2,12], 1 open`},
		"pods may share a directory of the host": {DefaultIdentifyBy, `
			start 10 A OTEL_SERVICE_NAME=a; search        =>
			start 20 B dir=A maps=A/a OTEL_SERVICE_NAME=b; ring A/a; push A/a; walk; drain
			                                              => drained map[], sought pod A /A/a [A,service.name=a] [1], 1 open
			search; drain                                 => drained map[a:3], pod B /A/a [B,service.name=b] [2,20], 1 open`},
		"the path is that in the agent's own container": {DefaultIdentifyBy, `
			start 20 B dir=A/rings root=A; search         =>
			start 10 A dir=A/rings maps=A/rings/a; ring A/rings/a; walk => sought pod B /rings/a [B] [2], 1 open
			search                                        => pod A /A/rings/a [A] [1,10], 1 open`},
		"a process that only observes a ring isn't its agent's": {DefaultIdentifyBy, `
			start 10 A maps=A/a; plain 11 maps=A/a; ring A/a; search => pod A /A/a [A] [1,10], 1 open`},
		"a ring that any of the pods may have left has no pod": {DefaultIdentifyBy, `
			start 10 A OTEL_SERVICE_NAME=a OTEL_RESOURCE_ATTRIBUTES=x=1; start 20 B dir=A OTEL_SERVICE_NAME=b OTEL_RESOURCE_ATTRIBUTES=x=1; search; ring A/a; search
			                                              => left /A/a [x=1] [], 1 open`},
		"a directory is watched for a while after its agents have exited": {DefaultIdentifyBy, `
			start 10 A; start 12 B box=A; ring A/a; push A/a; search; drain => drained map[a:3], left pod A /A/a [A] [1], 1 open
			exit A/a; quit 10; search; ring A/b; push A/b; walk; search; drain; drain => drained map[a:3 b:3], drained map[a:3 b:3], left pod A /A/b [A] [1], 2 open
			exit A/b; wait 1h; forget =>`},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, tt.by)
			scripttest.Run(t, tt.script, m.run, m.see)
		})
	}
}

func TestAgentsInVolumes(t *testing.T) {
	for name, script := range map[string]string{
		"all volumes are found": `
			ring A/shm/a; ring B/shm/a; ring B/rings/b; search
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
			m := newKubelet(t)
			scripttest.Run(t, script, m.run, m.see)
		})
	}
}

// hang starts a process whose environment can't be read until the test ends.
func hang(h *processtest.Host, p processtest.Process) {
	p.PID = 12
	h.Start(p)
	environ := h.Path(12, "environ")
	must.OK(h.TB, errors.Join(os.Remove(environ), syscall.Mkfifo(environ, 0o600)))
	h.TB.Cleanup(func() {
		f, err := os.OpenFile(environ, os.O_RDWR, 0)
		must.OK(h.TB, errors.Join(err, f.Close()))
	})
}

// identified searches, and identifies the agent of a file in the only directory that is found.
func identified(t *testing.T, f Finder, file files.ID, since time.Time) attributed {
	t.Helper()
	found, _ := f.Find(time.Now())
	for _, l := range found {
		return l.Identify(drain.Agent{Name: "agent"}, file, since)
	}
	t.Fatal("nothing found")
	return attributed{}
}

// What the last search has found decides, unless it is too old, or was cut short.
func TestIdentifyReportsWhetherARingIsMapped(t *testing.T) {
	before, after := time.Time{}, time.Now().Add(time.Hour)
	for name, tc := range map[string]struct {
		then  func(*processtest.Host) // what happens before the last search
		again bool                    // a search before that
		since time.Time
		want  string
	}{
		"mapped":               {since: after, want: "Known, up"},
		"its process exits":    {then: func(h *processtest.Host) { h.Exit(11) }, since: after, want: "Sought, "},
		"its process exited":   {then: func(h *processtest.Host) { h.Exit(11) }, since: before, want: "Left, exited"},
		"others can't be seen": {then: func(h *processtest.Host) { h.Exit(11); hang(h, inPod(12, "/")) }, since: before, want: "Sought, "},
		// They may have the ring mapped, too.
		"nor others elsewhere": {then: func(h *processtest.Host) { h.Exit(11); hang(h, processtest.Process{Namespace: "mnt:[1]"}) }, again: true, since: before, want: "Left, "},
	} {
		t.Run(name, func(t *testing.T) {
			host, dir := processtest.New(t), t.TempDir()
			w, err := ringbuf.Create(filepath.Join(dir, "agent"), ringbuf.V4, 8)
			must.OK(t, err)
			defer w.Close()
			for pid := 10; pid <= 11; pid++ {
				p := inPod(pid, dir)
				if pid == 11 {
					p.Maps = w.Path()
				}
				host.Start(p)
			}
			info, err := os.Stat(w.Path())
			must.OK(t, err)
			finder := Processes{Proc: host.Proc}.Finder(DefaultIdentifyBy)
			identified(t, finder, files.IDOf(info), before)
			if tc.then != nil {
				tc.then(host)
			}
			if tc.again {
				_, err := finder.Find(time.Now())
				must.OK(t, err)
			}
			a := identified(t, finder, files.IDOf(info), tc.since)
			got := []string{"Known", "Partly", "Left", "Sought"}[a.Attribution] + ", " + map[drain.Up]string{drain.UpYes: "up", drain.UpNo: "exited"}[a.up]
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// It has exited between the search and now, so no search will find it again.
func TestAgentThatHasExitedSinceTheSearchIsKnown(t *testing.T) {
	host, dir := processtest.New(t), t.TempDir()
	w, err := ringbuf.Create(filepath.Join(dir, "agent"), ringbuf.V4, 8)
	must.OK(t, err)
	defer w.Close()
	p := inPod(11, dir)
	p.Maps = w.Path()
	host.Start(p)
	info, err := os.Stat(w.Path())
	must.OK(t, err)
	found, err := Processes{Proc: host.Proc}.Finder(DefaultIdentifyBy).Find(time.Now())
	must.OK(t, err)
	host.Exit(11)
	for _, l := range found {
		a := l.Identify(drain.Agent{}, files.IDOf(info), time.Now())
		if pid, _ := a.Process.Value(semconv.ProcessPID); a.Attribution != drain.Known || pid.AsInt64() != 11 || a.up != drain.UpUnknown {
			t.Errorf("identified as %+v, up %v", a.Agent, a.up)
		}
	}
}

func TestRingBelowADirectoryHasThePathOfItsMapping(t *testing.T) {
	host, dir := processtest.New(t), t.TempDir()
	must.OK(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	w, err := ringbuf.Create(filepath.Join(dir, "sub", "agent"), ringbuf.V4, 8)
	must.OK(t, err)
	defer w.Close()
	p := inPod(11, dir)
	p.Maps = w.Path()
	host.Start(p)
	info, err := os.Stat(w.Path())
	must.OK(t, err)
	found, err := Processes{Proc: host.Proc}.Finder(DefaultIdentifyBy).Find(time.Now())
	must.OK(t, err)
	var got []string
	for _, l := range found {
		if strings.HasSuffix(l.Path, dir) {
			a := l.Identify(drain.Agent{Name: "sub/agent"}, files.IDOf(info), time.Now())
			got = append(got, a.Dir, strings.TrimPrefix(a.ID, "pod "+uid1+" "))
		}
	}
	if diff := cmp.Diff([]string{dir, w.Path()}, got); diff != "" {
		t.Error(diff)
	}
}

// A user whose processes can't all be examined in time doesn't delay the agents of others.
func TestUserDelaysOnlyItsOwnAgents(t *testing.T) {
	host := processtest.New(t)
	for pid, user := range map[int]string{10: "user-1", 11: "user-2", 12: "user-2"} {
		host.Start(processtest.Process{
			PID: pid, Namespace: "mnt:[1]", Cgroup: "/user.slice/" + user + ".slice/session-1.scope",
			Env: []string{"NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_DIR=/" + user},
		})
	}
	environ := host.Path(12, "environ")
	must.OK(t, errors.Join(os.Remove(environ), syscall.Mkfifo(environ, 0o600)))
	t.Cleanup(func() {
		f, err := os.OpenFile(environ, os.O_RDWR, 0)
		must.OK(t, errors.Join(err, f.Close()))
	})
	finder := Processes{Proc: host.Proc}.Finder(DefaultIdentifyBy)
	since := time.Now()
	found, err := finder.Find(since)
	must.OK(t, err)
	got := make(map[string]drain.Attribution)
	for _, l := range found {
		a := l.Identify(drain.Agent{Name: "a"}, files.ID{Ino: 1}, since)
		got[a.ID] = a.Attribution
	}
	if diff := cmp.Diff(map[string]drain.Attribution{"/user-1/a": drain.Left, "/user-2/a": drain.Sought}, got); diff != "" {
		t.Error(diff)
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
	host.Start(processtest.Process{PID: 11, Namespace: "mnt:[11]", Cgroup: "/system.slice/a.service", Env: env("/sandbox")})
	host.Start(processtest.Process{PID: 12, Namespace: "mnt:[12]", Cgroup: "/docker/" + container1, Env: env("/container")})
	host.Start(processtest.Process{PID: 13, Namespace: "mnt:[13]", Cgroup: processtest.InPod(uid1, container2) + "/docker/" + container1, Env: env("/pod")})
	found, err := Processes{Proc: host.Proc}.Finder(DefaultIdentifyBy).Find(time.Now())
	must.OK(t, err)
	got := make(map[string]drain.Holder)
	for _, l := range found {
		got[l.Identify(drain.Agent{Name: "a"}, files.ID{}, time.Time{}).ID] = l.Holder
	}
	want := map[string]drain.Holder{
		"/host/a": {Place: "/host", Shared: true}, "pod system.slice/a.service /sandbox/a": {Place: "mnt:[11] /"},
		"pod " + container1 + " /container/a": {Container: container1}, "pod " + uid1 + " " + container1 + " /pod/a": {Pod: uid1, Container: container2},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A store may appear before its process is found, and isn't reported until then.
func TestStoreBelongsToTheProcessThatHasItMapped(t *testing.T) {
	m := newMachine(t, DefaultIdentifyBy)
	m.watcher.cfg.Stores = &Stores{Limit: 10, StaleAfter: time.Hour}
	w := storetest.Create(t, m.fixture.dir, storetest.Config{PID: 7})
	env := []string{"NIXL_TELEMETRY_EXPORTER=prometheus_mp", "NIXL_TELEMETRY_MULTIPROC_DIR=" + m.fixture.dir}
	m.host.Start(inPod(10, "/", env...))
	reported := func() (list []string) {
		m.watcher.Stores(func(all []drain.Snapshot) {
			for _, s := range all {
				rank, _ := s.Resource.Value(semconv.LocalRank)
				pid, _ := s.Process.Value(semconv.ProcessPID)
				list = append(list, fmt.Sprint(pid.AsInt64(), " ", rank.AsString()))
			}
		})
		return list
	}
	m.run([]string{"search"}) // twice, but the process isn't known before
	before := reported()
	later := storetest.Create(t, m.fixture.dir, storetest.Config{PID: 8})
	p := inPod(11, "/", append(env, "LOCAL_RANK=3")...)
	p.Maps = later.Path()
	m.host.Start(p)
	m.run([]string{"walk"})
	sought := reported()
	m.run([]string{"search"})
	after := reported()
	slices.Sort(after)
	if diff := cmp.Diff([][]string{{"7 "}, {"7 "}, {"11 3", "7 "}}, [][]string{before, sought, after}); diff != "" {
		t.Errorf("PIDs and ranks of %s (-want +got):\n%s", w.Name(), diff)
	}
}
