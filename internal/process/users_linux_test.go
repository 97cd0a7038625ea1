// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/must"
)

func TestUsersOfFilesAreFound(t *testing.T) {
	proc := t.TempDir()
	add := func(pid int, maps string) {
		dir := filepath.Join(proc, strconv.Itoa(pid))
		must.OK(t, os.Mkdir(dir, 0o750))
		write(t, filepath.Join(dir, "maps"), maps)
		write(t, filepath.Join(dir, "stat"), fmt.Sprintf("%d (a) name) S 1 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 47%[1]d 0 0 0", pid))
	}
	ring := files.ID{Dev: 0xfe00, Ino: 5678}
	moved, elsewhere := files.ID{Dev: 0x1a, Ino: 77}, files.ID{Dev: 0x1a, Ino: 5678}
	for pid, perms := range map[int][]string{100: {"rw-s"}, 200: {"r--s"}, 300: {"rw-s", "rw-s"}, 400: {"rw-p"}, 500: nil} {
		text := "7f0a00000000-7f0a00001000 rw-p 00000000 00:00 0\n"
		for _, p := range perms {
			text += "7f0a4c000000-7f0a4c011000 " + p + " 00000000 fe:00 5678   /run/nixl/agent\n" +
				"7f0a4d000000-7f0a4d011000 " + p + " 00000000 fe:00 9999   /run/nixl/other\n"
		}
		add(pid, text)
	}
	write(t, filepath.Join(proc, "meminfo"), "")
	// On Btrfs, the device of a mapping isn't that of stat(2).
	add(600, "7f0a00000000-7f0a00001000 rw-s 00000000 00:2b 77   /data/agent\n7f0a00000000-7f0a00001000 rw-s 00000000 00:2b 77   /data/other\n")
	// On overlayfs, old kernels show the device and the inode of the layer below.
	layered := files.ID{Dev: 0x2b, Ino: 88}
	for pid, namespace := range map[int]string{700: "mnt:[1]", 800: "mnt:[2]"} {
		add(pid, "7f0a00000000-7f0a00001000 rw-s 00000000 fe:00 99   /tmp/agent\n")
		must.OK(t, os.Mkdir(filepath.Join(proc, strconv.Itoa(pid), "ns"), 0o750))
		must.OK(t, os.Symlink(namespace, filepath.Join(proc, strconv.Itoa(pid), "ns", "mnt")))
	}
	must.OK(t, os.Symlink("700", filepath.Join(proc, "self")))
	write(t, filepath.Join(proc, "locks"), "1: FLOCK  ADVISORY  WRITE 100 fe:00:5678 0 EOF\n")
	u, err := FindUsers(t.Context(), proc, map[files.ID]string{ring: "/run/nixl/agent", moved: "/data/agent", elsewhere: "", layered: "/tmp/agent"})
	must.OK(t, err)
	want := map[files.ID][]User{ring: {
		{PID: 100, Parent: 1, Start: 47100, Writable: 1}, {PID: 200, Parent: 1, Start: 47200}, {PID: 300, Parent: 1, Start: 47300, Writable: 2},
	}, moved: {{PID: 600, Parent: 1, Start: 47600, Writable: 1}}, layered: {{PID: 700, Parent: 1, Start: 47700, Writable: 1}}}
	if diff := cmp.Diff(want, u.Of); diff != "" {
		t.Error(diff)
	}
	if got := u.Agents(ring); len(got) != 1 || got[0].PID != 300 || u.Consumers[ring] != 100 {
		t.Errorf("agents %v, consumer %d", got, u.Consumers[ring])
	}
	if u.Everywhere {
		t.Error("the PID namespace is unknown, so processes may be missing")
	}
}

func TestSearchForUsersCanBeCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := FindUsers(ctx, "/proc", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestDeviceOfMappingIsThatOfStat(t *testing.T) {
	for _, dev := range []uint64{0xfe00, 0x1a, 1<<20 | 0x1a, 0x12<<44 | 0xfff01} {
		if got, ok := device([]byte(files.Device(dev))); got != dev || !ok {
			t.Errorf("%s is %#x, want %#x", files.Device(dev), got, dev)
		}
	}
	for _, bad := range []string{"", "fe", "fe:0x", "f e:00"} {
		if _, ok := device([]byte(bad)); ok {
			t.Errorf("%q is valid", bad)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must.OK(t, os.WriteFile(path, []byte(text), 0o600))
}
