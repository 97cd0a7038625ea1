// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fleet

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// running is a process: the devices that it has open, and its CPUs. Each NUMA node has four.
type running struct {
	open []string
	cpus string
}

// placed returns the evidence about the first of some agents, which is a straggler.
func placed(t *testing.T, agents []running) []string {
	t.Helper()
	proc := t.TempDir()
	write := func(text string, path ...string) {
		file := filepath.Join(append([]string{proc}, path...)...)
		must.OK(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must.OK(t, os.WriteFile(file, []byte(text+"\n"), 0o644))
	}
	for node, list := range []string{"0-3", "4,5-7"} {
		write(list, "1", "root", "sys", "devices", "system", "node", "node"+strconv.Itoa(node), "cpulist")
		verbs := []string{"1", "root", "sys", "class", "infiniband_verbs", "uverbs" + strconv.Itoa(node)}
		write("mlx5_"+strconv.Itoa(node), append(verbs, "ibdev")...)
		write(strconv.Itoa(node), append(verbs, "device", "numa_node")...)
	}
	var f diagnose.Frame
	for i, a := range agents {
		pid := strconv.Itoa(100 + i)
		write("Name:\tpython3\nCpus_allowed_list:\t"+a.cpus, pid, "status")
		must.OK(t, os.MkdirAll(filepath.Join(proc, pid, "fd"), 0o755))
		for fd, target := range a.open {
			must.OK(t, os.Symlink(target, filepath.Join(proc, pid, "fd", strconv.Itoa(fd))))
		}
		f.Agents = append(f.Agents, diagnose.Agent{Identity: diagnose.Identity{ID: fmt.Sprint(i)}, Up: diagnose.Yes, Attributes: map[string]string{semconv.ProcessPID: pid}})
	}
	findings := []diagnose.Finding{{Kind: diagnose.Straggler, Agents: []diagnose.Identity{f.Agents[0].Identity}}}
	Place(proc, &f, findings)
	return findings[0].Evidence
}

func TestPlacementIsSaidOnlyIfAllPeersDifferPlainly(t *testing.T) {
	const first, second, other = "/dev/infiniband/uverbs0", "/dev/infiniband/uverbs1", "/dev/nvidia0"
	for name, tt := range map[string]struct {
		agents []running
		want   string
	}{
		"no device":                     {[]running{{[]string{other}, "0-7"}, {[]string{first}, "0-7"}, {[]string{second, second}, "0-7"}}, "its process has no RDMA device open; those of its peers have 1"},
		"fewer devices":                 {[]running{{[]string{first}, "0-7"}, {[]string{first, second}, "0-7"}}, "its process has one RDMA device open, mlx5_0; those of its peers have 2"},
		"the other NUMA node":           {[]running{{[]string{first}, "4-7"}, {[]string{first}, "0-3"}, {[]string{second}, "5"}}, "its process has only RDMA devices of other NUMA nodes open: mlx5_0; those of its peers have none of other nodes"},
		"other devices":                 {[]running{{[]string{first}, "0-7"}, {[]string{second}, "0-7"}}, ""},
		"peers that differ":             {[]running{{nil, "0-7"}, {nil, "0-7"}, {[]string{first}, "0-7"}}, ""},
		"a peer on the other node, too": {[]running{{[]string{first}, "4-7"}, {[]string{first}, "0-3"}, {[]string{second}, "0-3"}}, ""},
		"no peer":                       {[]running{{nil, "0-7"}}, ""},
		"unknown device":                {[]running{{nil, "0-7"}, {[]string{"/dev/infiniband/uverbs9"}, "0-7"}}, ""},
	} {
		want := []string{}
		if tt.want != "" {
			want = append(want, tt.want)
		}
		if got := placed(t, tt.agents); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := cpus(" 0-2,7\n"); !maps.Equal(got, map[int]bool{0: true, 1: true, 2: true, 7: true}) {
		t.Errorf("CPUs %v", got)
	}
}
