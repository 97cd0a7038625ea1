// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"os"
	"path"
	"strings"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// usage collects the mappings of a process that are related to NIXL.
type usage struct {
	library bool     // libnixl.so or one of its companion libraries is mapped
	files   []Mapped // files that may be rings
	stores  []string // directories of stores
}

// add adds a mapping if it is related to NIXL. root is the path of the process's root in
// its mount namespace.
func (s *usage) add(m Mapping, root string) {
	name := m.Path[bytes.LastIndexByte(m.Path, '/')+1:]
	switch {
	case bytes.HasPrefix(name, []byte("libnixl")) && bytes.Contains(name, []byte(".so")):
		s.library = true
	case !m.Shared || !m.Write || m.Offset != 0:
	case bytes.HasPrefix(name, []byte("nixl.")) && bytes.HasSuffix(name, []byte(".mmap")):
		if file, ok := below(root, string(m.Path)); ok {
			s.stores = addDir(s.stores, path.Dir(file))
		}
	case ringSizes[m.Size] && len(s.files) < maxMapped:
		if file, ok := below(root, string(m.Path)); ok {
			id, _ := m.ID()
			s.files = append(s.files, Mapped{id, file})
		}
	}
}

// below converts a path in the mount namespace to a path in a process's root, which may
// be different after chroot(2). It reports false if the path is outside the root.
func below(root, file string) (string, bool) {
	if root == "/" {
		return file, true
	}
	rest, ok := strings.CutPrefix(file, root)
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
