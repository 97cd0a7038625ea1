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

// signs are what the mappings of a process say about its use of NIXL.
type signs struct {
	library bool     // libnixl.so, or a library that comes with it
	rings   []string // files that may be rings
	stores  []string // directories of stores
}

// look looks for signs in a mapping of a process whose root is at a path of its
// mount namespace.
func (s *signs) look(m Mapping, root string) {
	name := m.Path[bytes.LastIndexByte(m.Path, '/')+1:]
	switch {
	case bytes.HasPrefix(name, []byte("libnixl")) && bytes.Contains(name, []byte(".so")):
		s.library = true
	case !m.Shared || !m.Write || m.Offset != 0:
	case bytes.HasPrefix(name, []byte("nixl.")) && bytes.HasSuffix(name, []byte(".mmap")):
		if file, ok := below(root, string(m.Path)); ok {
			s.stores = addDir(s.stores, path.Dir(file))
		}
	case ringSizes[m.Size] && len(s.rings) < maxCandidates:
		if file, ok := below(root, string(m.Path)); ok {
			s.rings = append(s.rings, file)
		}
	}
}

// below returns a path relative to a root. The kernel has paths relative to the
// root of the mount namespace, and a process may have changed its root.
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

// ringSizes are the sizes that the mapping of a ring may have.
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
