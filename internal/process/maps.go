// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

const (
	// maxMaps limits how many bytes of the mappings of one process are read, which is about
	// 100,000 mappings.
	maxMaps = 8 << 20
	// maxMapping limits the bytes of a mapping. A path has 4,095 bytes at most, and the kernel
	// writes a newline as \012.
	maxMapping = 32 << 10
)

// mappings are the mappings of a process that are related to NIXL. Paths are in its root.
type mappings struct {
	library bool     // libnixl.so or one of its companion libraries is mapped
	files   []string // that may be rings, or that have the name of a store
}

// readMaps reads the format of /proc/PID/maps. root is the path of the process's root in its
// mount namespace. readMaps skips invalid lines, and everything after the first 8 MiB.
func readMaps(r io.Reader, root string) (found mappings, err error) {
	lines := bufio.NewScanner(io.LimitReader(r, maxMaps))
	lines.Buffer(nil, maxMapping)
	for lines.Scan() {
		line := lines.Bytes()
		switch name := line[bytes.LastIndexByte(line, '/')+1:]; {
		case bytes.HasPrefix(name, []byte("libnixl")) && bytes.Contains(name, []byte(".so")):
			found.library = true
		case bytes.Contains(line, []byte(" rw-s 00000000 ")):
			found.add(string(line), root)
		}
	}
	return found, lines.Err()
}

// add adds a shared mapping from the start of a file, such as
//
//	7f0a4c000000-7f0a4c011000 rw-s 00000000 fe:00 5678   /run/nixl/agent
func (s *mappings) add(line, root string) {
	fields := strings.SplitN(line, " ", 6)
	if len(fields) < 6 || fields[1] != "rw-s" {
		return
	}
	low, high, _ := strings.Cut(fields[0], "-")
	from, err1 := strconv.ParseUint(low, 16, 64)
	to, err2 := strconv.ParseUint(high, 16, 64)
	file, ok := below(root, strings.ReplaceAll(strings.TrimLeft(fields[5], " "), `\012`, "\n"))
	if err1 != nil || err2 != nil || !ok || len(file) > maxPath {
		return
	}
	if (isStore(file) || ringSizes[to-from]) && len(s.files) < maxFiles {
		s.files = append(s.files, file)
	}
}

// isStore reports whether a file has the name of a prometheus_mp store.
func isStore(file string) bool {
	name := path.Base(file)
	return strings.HasPrefix(name, "nixl.") && strings.HasSuffix(name, ".mmap")
}

// below converts a path in the mount namespace to a path in a process's root, which may
// be different after chroot(2). It reports false if the path is outside the root.
func below(root, file string) (string, bool) {
	rest, ok := strings.CutPrefix(file, strings.TrimSuffix(root, "/"))
	if ok && rest == "" {
		return "/", true
	}
	return rest, ok && rest[0] == '/'
}

// ringSizes are the possible sizes of a ring's mapping.
var ringSizes = func() map[uint64]bool {
	page := uint64(os.Getpagesize())
	sizes := make(map[uint64]bool)
	for _, l := range ringbuf.Layouts() {
		for capacity := uint64(2); capacity <= ringbuf.MaxCapacity; capacity *= 2 {
			sizes[(uint64(l.FileSize(capacity))+page-1)/page*page] = true
		}
	}
	return sizes
}()
