// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// ringMap begins the line of a mapping with the size of a ring with two slots.
const ringMap = "7f0a4c000000-7f0a4c001000 rw-s 00000000 00:1a 9 "

func TestMappingsRelatedToNIXLAreFound(t *testing.T) {
	long := strings.Repeat("x", 1022)
	for name, tt := range map[string]struct {
		maps, root string
		want       mappings
	}{
		"none":          {},
		"library":       {maps: "7f1e4a228000-7f1e4a3bd000 r-xp 00028000 fe:00 5678                       /usr/lib/libnixl.so.1\n", want: mappings{library: true}},
		"other library": {maps: "7f1e4a228000-7f1e4a3bd000 r-xp 00028000 fe:00 5678                       /usr/libnixl.so/libnixl.txt\n"},
		"ring":          {maps: ringMap + "    /dev/shm/agent\n", want: mappings{files: []string{"/dev/shm/agent"}}},
		"largest ring": {
			maps: "7f0a40000000-7f0a40e01000 rw-s 00000000 00:1a 9 /a\n", want: mappings{files: []string{"/a"}},
		},
		"in the root":          {maps: ringMap + "/a/b\n", root: "/a", want: mappings{files: []string{"/b"}}},
		"outside of the root":  {maps: ringMap + "/ab/c\n", root: "/a"},
		"the root itself":      {maps: ringMap + "/a\n", root: "/a", want: mappings{files: []string{"/"}}},
		"spaces and a newline": {maps: ringMap + "   /tmp/ a  b\\012c (deleted)\n", want: mappings{files: []string{"/tmp/ a  b\nc (deleted)"}}},
		"long path":            {maps: ringMap + "/a" + long + "\n" + ringMap + "/ab" + long + "\n", want: mappings{files: []string{"/a" + long}}},
		"store":                {maps: ringMap + "/a/nixl.1.mmap\n" + ringMap + "/a/nixl.2.mmap\n", want: mappings{files: []string{"/a/nixl.1.mmap", "/a/nixl.2.mmap"}}},
		"other names":          {maps: strings.ReplaceAll(ringMap+"/a/nixl.1\n"+ringMap+"/a/1.mmap\n", "1000 ", "1001 ")},
		"another size":         {maps: "1000-2001 rw-s 00000000 00:1a 9 /a\n"},
		"other mappings": {maps: "1000-2000 rw-p 00000000 00:00 9 /a\n1000-2000 r--s 00000000 00:00 9 /a\n1000-2000 rw-s 00001000 00:00 9 /a\n" +
			"7ffc000-7ffd000 rw-p 00000000 00:00 0  [stack]\n1000-2000 rw-p 00000000 00:00 0 \n1000-2000 r--p 0 0:0 9 / rw-s 00000000 a\n"},
		"without a path": {maps: "1000-2000 rw-s 00000000 00:0f 1 anon_inode:[io/uring]\n"},
		"garbage": {maps: "\n/\n / \n-- / / / / /\nx-2000 rw-s 00000000 0:0 0 /a\n1000-x rw-s 00000000 0:0 0 /a\n" +
			"1000 rw-s 00000000 0:0 0 /a\n1000-2000 rw-s 00000000 /a\n1000-2000 rw-s 00000000 \n"},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.root == "" {
				tt.root = "/"
			}
			got, err := readMaps(strings.NewReader(tt.maps), tt.root)
			must.OK(t, err)
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(mappings{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMappingsReturnReadErrors(t *testing.T) {
	broken := errors.New("broken")
	if _, err := readMaps(iotest.ErrReader(broken), "/"); !errors.Is(err, broken) {
		t.Error(err)
	}
}

func TestMappingsAreLimited(t *testing.T) {
	other := fmt.Sprintf("1000-2000 r--p 00000000 00:1a 9 /%s\n", strings.Repeat("x", 4095))
	for name, tt := range map[string]struct {
		maps  string
		files int
	}{
		"files":  {maps: strings.Repeat(ringMap+"/a\n"+ringMap+"/a/nixl.1.mmap\n", 200), files: 256},
		"bytes":  {maps: strings.Repeat(other, 8<<20/len(other)+1) + ringMap + "/a\n"},
		"almost": {maps: strings.Repeat(other, 8<<20/len(other)-1) + ringMap + "/a\n", files: 1},
	} {
		found, err := readMaps(strings.NewReader(tt.maps), "/")
		if err != nil || len(found.files) != tt.files {
			t.Errorf("%s: %d files, error %v", name, len(found.files), err)
		}
	}
}
