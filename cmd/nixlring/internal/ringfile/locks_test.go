// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

func TestHoldersAreThoseOfFlock(t *testing.T) {
	locks := filepath.Join(t.TempDir(), "locks")
	text := "1: POSIX  ADVISORY  WRITE 11 fe:00:77 0 EOF\n" +
		"2: FLOCK  ADVISORY  WRITE 12 fe:00:78 0 EOF\n" +
		"2: -> FLOCK  ADVISORY  WRITE 13 fe:00:77 0 EOF\n" +
		"3: FLOCK  ADVISORY  WRITE 14 fe:01:77 0 EOF\n" +
		"4: FLOCK\n" +
		"5: FLOCK  ADVISORY  WRITE -1 fe:00:79 0 EOF\n" +
		"6: FLOCK  ADVISORY  WRITE x fe:00:80 0 EOF\n" +
		"7: FLOCK  ADVISORY  WRITE 15 fe:00:77 0 EOF\n"
	must.OK(t, os.WriteFile(locks, []byte(text), 0o600))
	want := map[string]int{"fe:00:78": 12, "fe:01:77": 14, "fe:00:77": 15}
	before := openFiles()
	got, all := LockHolders(locks)
	if after := openFiles(); after != before {
		t.Errorf("%d files are open, %d before", after, before)
	}
	if diff := cmp.Diff(want, got); diff != "" || !all {
		t.Errorf("all %v %s", all, diff)
	}
}

// Any process can take hundreds of thousands of locks.
func TestOnlyTheStartOfALongListIsRead(t *testing.T) {
	var text strings.Builder
	inode := uint64(10_000_000)
	for ; text.Len() <= maxList; inode++ {
		fmt.Fprintf(&text, "1: FLOCK  ADVISORY  WRITE 12 fe:00:%d 0 EOF\n", inode)
	}
	locks := filepath.Join(t.TempDir(), "locks")
	must.OK(t, os.WriteFile(locks, []byte(text.String()), 0o600))
	holders, all := LockHolders(locks)
	if all {
		t.Error("the list isn't known to be longer")
	}
	for i := uint64(10_000_000); i < inode; i++ {
		if pid := holders[LockKey(files.ID{Dev: 0xfe00, Ino: i})]; (pid == 12) != (i < inode-1) {
			t.Fatalf("the lock of %d of %d is held by %d", i, inode, pid)
		}
	}
	if n := int(inode - 10_000_000); len(holders) != n-1 {
		t.Errorf("%d locks, want %d", len(holders), n-1)
	}
}

func TestNoHoldersWithoutAList(t *testing.T) {
	if got, all := LockHolders(filepath.Join(t.TempDir(), "missing")); len(got) != 0 || all {
		t.Errorf("%v, all %v", got, all)
	}
}

func TestDeviceIsThatOfProc(t *testing.T) {
	for dev, want := range map[uint64]string{0xfe00: "fe:00", 0x1a: "00:1a", 1<<20 | 0x1a: "00:11a", 0x12<<44 | 0xfff01: "12fff:01"} {
		if got := Device(dev); got != want {
			t.Errorf("%#x is %s, want %s", dev, got, want)
		}
	}
}

// openFiles returns the number of files that this process has open; 0 if it can't be known.
func openFiles() int {
	list, _ := os.ReadDir("/proc/self/fd")
	return len(list)
}
