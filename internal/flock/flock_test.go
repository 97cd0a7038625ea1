// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package flock

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	if err := os.WriteFile(locks, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{Key("fe:00", 78): 12, Key("fe:01", 77): 14, Key("fe:00", 77): 15}
	if diff := cmp.Diff(want, Holders(locks)); diff != "" {
		t.Error(diff)
	}
}

func TestNoHoldersWithoutAList(t *testing.T) {
	if got := Holders(filepath.Join(t.TempDir(), "missing")); len(got) != 0 {
		t.Errorf("%v", got)
	}
}
