// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// file is a mapping that outlives its line.
type file struct {
	Size, Offset  uint64
	Write, Shared bool
	Dev           string
	Inode         uint64
	Path          string
}

func filesOf(r io.Reader) (list []file, err error) {
	err = ReadMaps(r, func(m Mapping) bool {
		list = append(list, file{m.Size, m.Offset, m.Write, m.Shared, string(m.Dev), m.Inode, string(m.Path)})
		return true
	})
	return list, err
}

func TestReadMapsReturnsFileMappings(t *testing.T) {
	long := strings.Repeat("x", lineSize)
	for _, tt := range []struct {
		name, maps string
		want       []file
	}{
		{"none", "", nil},
		{"library", "7f1e4a228000-7f1e4a3bd000 r-xp 00028000 fe:00 5678                       /usr/lib/libc.so.6\n", []file{
			{Size: 0x195000, Offset: 0x28000, Dev: "fe:00", Inode: 5678, Path: "/usr/lib/libc.so.6"},
		}},
		{"ring", "7f0a4c000000-7f0a4c011000 rw-s 00000000 00:1a 9 /dev/shm/agent\n", []file{
			{Size: 0x11000, Write: true, Shared: true, Dev: "00:1a", Inode: 9, Path: "/dev/shm/agent"},
		}},
		{"spaces and a newline", "1000-2000 r--s 00000000 00:1a 9    /tmp/ a  b\\012c (deleted)\n", []file{
			{Size: 0x1000, Shared: true, Dev: "00:1a", Inode: 9, Path: "/tmp/ a  b\nc (deleted)"},
		}},
		{"anonymous", "7ffc000-7ffd000 rw-p 00000000 00:00 0  [stack]\n1000-2000 rw-p 00000000 00:00 0 \n1000-2000 rw-p 00000000 00:00 0\n", nil},
		{"without a path", "1000-2000 rw-s 00000000 00:0f 1 anon_inode:[io/uring]\n", nil},
		{"garbage", "/\n / \n-- / / / / /\nx-y rw-s 0 0:0 0 /a\n2000-1000 rw-s 0 0:0 0 /a\n1000-2000 rw 0 0:0 0 /a\n1000-2000 rw-s 0 0:0 -1 /a\n", nil},
		{"incomplete line", "1000-2000 rw-s 00000000 00:1a 9 /tmp/agent-number-1", nil},
		{"too long", "1000-2000 rw-s 00000000 00:1a 9 /" + long + "\n1000-2000 rw-s 00000000 00:1a 9 /a\n", []file{
			{Size: 0x1000, Write: true, Shared: true, Dev: "00:1a", Inode: 9, Path: "/a"},
		}},
		{"too long, incomplete line", "1000-2000 rw-s 00000000 00:1a 9 /" + long, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := filesOf(strings.NewReader(tt.maps))
			if err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadMapsReturnsReadErrors(t *testing.T) {
	broken := errors.New("broken")
	if _, err := filesOf(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Error(err)
	}
}

func manyMaps(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%012x-%012x rw-p 00000000 fe:00 %d                       /usr/lib/python3/site-packages/torch/lib/lib%d.so\n", i<<12, (i+1)<<12, i, i)
	}
	return b.String()
}

func TestReadMapsDoesNotAllocatePerMapping(t *testing.T) {
	maps := manyMaps(20_000)
	n := 0
	allocs := testing.AllocsPerRun(3, func() {
		if err := ReadMaps(strings.NewReader(maps), func(Mapping) bool { n++; return true }); err != nil {
			t.Error(err)
		}
	})
	if n < 3*20_000 || allocs > 20 {
		t.Errorf("%d mappings, %v allocations", n, allocs)
	}
}

func TestReadMapsIsLimited(t *testing.T) {
	r := &counter{r: iotest.OneByteReader(strings.NewReader("1000-2000 rw-s 00000000 00:1a 9 /a\n"))}
	if err := ReadMaps(r, func(Mapping) bool { return false }); err != nil || r.n != 35 {
		t.Errorf("%d bytes, %v", r.n, err)
	}
	r = &counter{r: strings.NewReader(manyMaps(100_000))}
	if err := ReadMaps(r, func(Mapping) bool { return true }); err != nil || r.n > maxMaps {
		t.Errorf("%d bytes, %v", r.n, err)
	}
}

// counter counts the bytes that are read.
type counter struct {
	r io.Reader
	n int
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += n
	return n, err
}
