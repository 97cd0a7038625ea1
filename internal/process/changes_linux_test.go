// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/internal/lab/scripttest"
)

// run runs a command of a script.
func (h *host) run(s *Scanner, command []string) (found []Process) {
	h.t.Helper()
	pid, err := strconv.Atoi(command[1])
	switch command[0] {
	case "start": // PID and properties: starts a process, or changes it
		must.OK(h.t, err)
		h.setProcess(h.task(pid, command[2:]))
	case "ancestors": // of process 100: so many that have overwritten their environments, and one that hasn't
		for parent := 10; parent < 10+pid; parent++ {
			h.setProcess(task{PID: parent, Parent: parent + 1, Env: overwritten})
		}
		h.setProcess(task{PID: 10 + pid, Env: enabled})
	case "quit":
		h.exit(pid)
	case "remove": // a file of a process
		must.OK(h.t, os.Remove(h.Path(pid, command[2])))
	case "directory": // in place of a file of a process, so that it can't be read
		must.OK(h.t, errors.Join(os.Remove(h.Path(pid, command[2])), os.Mkdir(h.Path(pid, command[2]), 0o700)))
	case "link": // a name in /proc that isn't that of a process
		must.OK(h.t, os.Symlink(h.Path(100), filepath.Join(h.Proc, command[1])))
	case "scan": // after a time, and how often
		after, err := time.ParseDuration(command[1])
		must.OK(h.t, err)
		times, _ := strconv.Atoi(append(command, "1")[2])
		for range times {
			found = h.scan(s, after)
		}
	case "seek": // the process of a ring
		found, err = s.Scan(h.now, true)
		must.OK(h.t, err)
	default:
		h.t.Fatalf("unknown command %q", command)
	}
	return found
}

// task returns a process with properties.
func (h *host) task(pid int, properties []string) task {
	h.t.Helper()
	p := task{PID: pid}
	for _, property := range properties {
		name, value, _ := strings.Cut(property, "=")
		value, err := strconv.Unquote(`"` + value + `"`)
		must.OK(h.t, err)
		file := filepath.Join(h.root, value)
		switch name {
		case "enabled":
			p.Env = enabled
		case "overwritten":
			p.Env = overwritten
		case "pod":
			p.Cgroup = inAPod
		case "grows": // the size of its mappings
			p.Mappings += "\n"
		case "exe":
			p.Executable = value
		case "ns":
			p.Namespace = value
		case "parent":
			p.Parent, err = strconv.Atoi(value)
		case "start":
			p.Start, err = strconv.ParseUint(value, 10, 64)
		case "library":
			p.Mappings += library
		case "ring", "newer": // has it mapped; it has a layout that isn't known
			if p.Mappings += h.ring(value); name == "newer" {
				ringtest.Edit(h.t, file, func(r *ringtest.Header) { r.Version = 5 })
			}
		case "file": // has another file of that size mapped
			h.write(file, strings.Repeat("x", ringSize))
			p.Mappings += h.mapping(value)
		case "maps": // has a file mapped that can't be opened
			p.Mappings += h.mapping(value)
		default:
			p.Env = append(p.Env, property)
		}
		must.OK(h.t, err)
	}
	return p
}

func TestAgentsAreFound(t *testing.T) {
	for name, script := range map[string]string{
		"ring":             `NIXL_TELEMETRY_ENABLE=1 NIXL_TELEMETRY_DIR=/dev/shm/ => 100 python3 /dev/shm`,
		"no directory":     `NIXL_TELEMETRY_ENABLE=1 NIXL_TELEMETRY_EXPORTER=BUFFER => 100 python3 /tmp`,
		"not clean":        `NIXL_TELEMETRY_ENABLE=1 NIXL_TELEMETRY_DIR=/rings/../x => 100 python3 /x`,
		"relative":         `NIXL_TELEMETRY_ENABLE=1 NIXL_TELEMETRY_DIR=rings =>`,
		"store":            `NIXL_TELEMETRY_ENABLE=1 NIXL_TELEMETRY_EXPORTER=prometheus_mp NIXL_TELEMETRY_MULTIPROC_DIR=/shm/a NIXL_TELEMETRY_DIR=/run => 100 python3 /shm/a`,
		"disabled":         `NIXL_TELEMETRY_ENABLE=n NIXL_TELEMETRY_DIR=/dev/shm =>`,
		"another exporter": `NIXL_TELEMETRY_ENABLE=1 NIXL_TELEMETRY_EXPORTER=prometheus NIXL_TELEMETRY_DIR=/dev/shm =>`,
		// The kernel doesn't know variables that Python adds to os.environ.
		"mapped library":                 `library => 100 python3`,
		"mapped ring":                    `ring=/dev/shm/agent => 100 python3 /dev/shm, 1 rings`,
		"mapped rings":                   `library ring=/a/1 ring=/b/2 ring=/a/3 => 100 python3 /a /b, 3 rings`,
		"mapped ring with strange name":  `ring=/dev/shm/a\tb\n(deleted) => 100 python3 /dev/shm, 1 rings`,
		"mapped ring of a newer version": `newer=/run/agent => 100 python3 /run, 1 rings`,
		"mapped store":                   `maps=/dev/shm/nixl.17.ab.0.mmap => 100 python3 /dev/shm`,
		"mapped ring that was removed":   `maps=/dev/shm/agent\u0020(deleted) =>`,
		"mapped file of another kind":    `file=/file =>`,
	} {
		t.Run(name, func(t *testing.T) { runScript(t, "start 100 "+strings.Replace(script, "=>", "; scan 0s =>", 1), 100) })
	}
}

func TestChangesOfProcesses(t *testing.T) {
	for name, script := range map[string]string{
		"rings are found beside the directory of the environment": `
			start 100 enabled; scan 0s                              => 100 python3 /run/nixl
			start 100 enabled ring=/run/nixl/a ring=/run/nixl/b/a; scan 1m => 100 python3 /run/nixl /run/nixl/b, 2 rings`,
		"exec of another program": `
			start 100 exe=/bin/bash; scan 1m 10                     =>
			start 100 enabled pod; scan 15s                         => 100 python3 /run/nixl in a pod
			start 100 exe=/bin/sleep; scan 1s                       =>`,
		// The exe link doesn't change, so only the next examination detects this.
		"exec of the same program": `
			start 100; scan 0s                                      =>
			start 100 enabled grows; scan 1s                        => 100 python3 /run/nixl`,
		"mappings of the same size are read occasionally, because a ring may replace another one": `
			start 100 ring=/a/agent; scan 0s                        => 100 python3 /a, 1 rings
			start 100 ring=/b/agent; scan 1m MOST                   => 100 python3 /a, 1 rings
			scan 1m                                                 => 100 python3 /b, 1 rings`,
		"mappings of the same size are read if the process of a ring is sought": `
			start 100 ring=/a/agent; scan 0s                        => 100 python3 /a, 1 rings
			start 100 ring=/b/agent; scan 1m 3                      => 100 python3 /a, 1 rings
			seek .; scan 0s                                         => 100 python3 /b, 1 rings`,
		// Its environment doesn't enable NIXL, and it doesn't have the library mapped.
		"a process that wasn't an agent is examined if it has changed and the process of a ring is sought": `
			start 100; scan 1m 20                                   =>
			start 100 ring=/a/agent; scan 1s                        =>
			seek .; scan 0s                                         => 100 python3 /a, 1 rings`,
		"a young process is examined soon": `
			start 100; scan 1s 30                                   =>
			start 100 ring=/a/agent; scan 5s; scan 5s               => 100 python3 /a, 1 rings`,
		"exits": `
			start 100 enabled; start 200 enabled; scan 0s           => 100 python3 /run/nixl, 200 python3 /run/nixl
			quit 100; remove 200 exe; scan 1s                       =>`, // a zombie has no program
		"a PID is reused": `
			start 100 start=1 enabled; scan 0s                      => 100 python3 /run/nixl
			start 100 start=2 enabled pod; scan 1s                  => 100 python3 /run/nixl in a pod
			start 100 start=3; scan 1s                              =>`,
		"a PID is reused for a process that has overwritten its environment": `
			start 100 start=3; scan 1m                              =>
			start 10 enabled; start 100 start=4 parent=10 overwritten grows; scan 1m; scan 0s => 10 python3 /run/nixl, 100 python3 /run/nixl`,
		"an examination that has failed is repeated, even if the mappings have the same size": `
			start 100 enabled; directory 100 environ; scan 0s       =>
			remove 100 environ; start 100 enabled; scan 1m          => 100 python3 /run/nixl`,
		"a process stays in its pod": `
			start 100 enabled pod; scan 0s                          => 100 python3 /run/nixl in a pod
			start 100 enabled; scan 1m                              => 100 python3 /run/nixl in a pod`,
		"this process, which also has rings mapped": `
			start 4194304 enabled; start 200 enabled; scan 0s       => 200 python3 /run/nixl`,
		"other files in /proc": `
			start 100 enabled; link sys; link 1x; link 0; link -3; link 99999999999999999999; scan 0s => 100 python3 /run/nixl`,
	} {
		t.Run(name, func(t *testing.T) { runScript(t, strings.ReplaceAll(script, "MOST", strconv.Itoa(maxUnchanged)), 0) })
	}
}

// Programs that set their title overwrite their environment. The fallbacks are an earlier examination and the
// ancestors.
func TestOverwrittenEnvironmentHasFallbacks(t *testing.T) {
	for name, script := range map[string]string{
		"its own, read earlier":          "start 100 enabled => 100 python3 /run/nixl",
		"parent's":                       "ancestors 0 => 100 python3 /run/nixl",
		"grandparent's":                  "ancestors 1 => 100 python3 /run/nixl",
		"of an ancestor, 8 generations":  "ancestors 7 => 100 python3 /run/nixl",
		"of an ancestor, 9 generations":  "ancestors 8 =>",
		"another container's":            "start 10 enabled ns=mnt:[1] =>",
		"parent has no NIXL variables":   "start 10 parent=5 A=B; start 5 enabled =>",
		"parent has exited":              "start 1 enabled; start 5 enabled =>",
		"parent's can't be read":         "start 1 enabled; start 10; remove 10 environ =>",
		"parent is its own parent":       "start 10 parent=10 overwritten =>",
		"another container's, read here": "start 10 parent=5 overwritten ns=mnt:[1]; start 5 enabled =>",
	} {
		script = strings.Replace(script, "=>", "; scan 0s; start 100 parent=10 overwritten grows; scan 1m 3 =>", 1)
		t.Run(name, func(t *testing.T) { runScript(t, script, 100) })
	}
}

// The environment of a worker may be erased, and so may those of its ancestors.
func TestContainerHasWhatItsKnownEnvironmentsHaveInCommon(t *testing.T) {
	for name, tt := range map[string]struct {
		others []task
		want   string // service, role, and whether anything is known
	}{
		"nothing":           {nil, "  false"},
		"one":               {[]task{{Env: []string{"OTEL_SERVICE_NAME=llm", "ROLE=decode"}}}, "llm decode true"},
		"some agree":        {[]task{{Env: []string{"OTEL_SERVICE_NAME=llm", "ROLE=decode"}}, {Env: []string{"OTEL_SERVICE_NAME=llm"}}}, "llm  true"},
		"none agree":        {[]task{{Env: []string{"OTEL_SERVICE_NAME=llm"}}, {Env: []string{"OTEL_SERVICE_NAME=x"}}}, "  false"},
		"also erased":       {[]task{{Env: []string{"OTEL_SERVICE_NAME=llm"}}, {Env: overwritten}}, "llm  true"},
		"another container": {[]task{{Env: []string{"OTEL_SERVICE_NAME=llm"}, Cgroup: "/docker/" + other}}, "  false"},
		"another root":      {[]task{{Env: []string{"OTEL_SERVICE_NAME=llm"}, Namespace: "mnt:[7]"}}, "  false"},
		"another user":      {[]task{{Env: []string{"OTEL_SERVICE_NAME=llm"}, Cgroup: "/user.slice/user-2.slice/a.scope"}}, "  false"},
	} {
		h, cgroup := newHost(t), inAPod
		if name == "another user" {
			cgroup = "/user.slice/user-1.slice/a.scope"
		}
		h.setProcess(task{PID: 100, Parent: 99, Env: overwritten, Cgroup: cgroup, Mappings: h.ring("/run/agent"), Title: "VLLM::Worker_TP1"})
		for i, p := range tt.others {
			p.PID = 200 + i
			if p.Cgroup == "" {
				p.Cgroup = inAPod
			}
			h.setProcess(p)
		}
		found := h.scan(New(Config{Proc: h.Proc, Env: []string{"ROLE"}, Attributes: []string{"*"}}), 0)
		if len(found) != 1 || found[0].Rank != "1" {
			t.Fatalf("%s: found %+v", name, found)
		}
		if got := fmt.Sprint(found[0].Attributes["service.name"], " ", found[0].Env["ROLE"], " ", found[0].Known); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// A child inherits the mappings of an agent, and a Collector has the rings of all agents mapped.
func TestTheAgentIsTheFirstOfTheProcessesThatHaveAFileMapped(t *testing.T) {
	collector, agent, child := Process{Start: 1}, Process{Start: 2, Agent: true}, Process{Start: 3, Agent: true}
	for _, two := range [][2]Process{{agent, collector}, {agent, child}, {child, collector}} {
		if !two[0].Precedes(two[1]) || two[1].Precedes(two[0]) {
			t.Errorf("%+v doesn't precede %+v", two[0], two[1])
		}
	}
}

// runScript runs a script. What is seen are the agents that the last scan has found; only one of them if its PID isn't 0.
func runScript(t *testing.T, script string, only int) {
	t.Helper()
	h := newHost(t)
	s := New(Config{Proc: h.Proc})
	var found []Process
	scripttest.Run(t, script, func(command []string) { found = h.run(s, command) }, func() string {
		var list []string
		for _, p := range found {
			text := strings.Join(append([]string{strconv.Itoa(p.PID), p.Executable}, p.Dirs...), " ")
			if n := len(p.Files); n > 0 {
				text += fmt.Sprintf(", %d rings", n)
			}
			if p.Pod != "" {
				text += " in a pod"
			}
			if only == 0 || only == p.PID {
				list = append(list, text)
			}
		}
		return strings.Join(list, ", ")
	})
}
