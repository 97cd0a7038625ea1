// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// maxMaps limits how many bytes of the mappings of one process are read, which is about
// 100,000 mappings.
const maxMaps = 8 << 20

// Mapping is a mapping of a file. Dev and Path are valid only until the function that
// received the Mapping returns.
type Mapping struct {
	Start         uint64 // address
	Size, Offset  uint64 // bytes
	Write, Shared bool
	Dev           []byte // major:minor, both in hexadecimal
	Inode         uint64
	Path          []byte // in the process's mount namespace
}

// Range returns the name of the mapping in /proc/PID/map_files.
func (m Mapping) Range() string { return fmt.Sprintf("%x-%x", m.Start, m.Start+m.Size) }

// ReadMaps reads the format of /proc/PID/maps. It calls fn for each mapping of a file, until
// fn returns false. It doesn't allocate memory for mappings. It skips invalid lines, and
// everything after the first 8 MiB.
func ReadMaps(r io.Reader, fn func(Mapping) bool) error {
	b := newLines(io.LimitReader(r, maxMaps))
	defer freeLines(b)
	for {
		line, err := b.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			err = skip(b, '\n')
		case err == nil && bytes.IndexByte(line, '/') >= 0: // skips other memory
			if m, ok := parseMapping(line); ok && !fn(m) {
				return nil
			}
		}
		if err != nil { // an incomplete last line is skipped
			return ignoreEOF(err)
		}
	}
}

// parseMapping parses a line such as
//
//	7f0a4c000000-7f0a4c011000 rw-s 00000000 fe:00 5678   /run/nixl/agent
//
// The kernel writes a newline in a path as \012.
func parseMapping(line []byte) (m Mapping, ok bool) {
	line = bytes.TrimSuffix(line, []byte("\n"))
	addresses, line, _ := bytes.Cut(line, []byte(" "))
	perms, line, _ := bytes.Cut(line, []byte(" "))
	offset, line, _ := bytes.Cut(line, []byte(" "))
	dev, line, _ := bytes.Cut(line, []byte(" "))
	inode, path, _ := bytes.Cut(line, []byte(" "))
	path = bytes.TrimLeft(path, " ")
	if len(perms) != 4 || len(path) == 0 || path[0] != '/' {
		return Mapping{}, false
	}
	low, high, _ := bytes.Cut(addresses, []byte("-"))
	from, err1 := strconv.ParseUint(string(low), 16, 64)
	to, err2 := strconv.ParseUint(string(high), 16, 64)
	at, err3 := strconv.ParseUint(string(offset), 16, 64)
	ino, err4 := strconv.ParseUint(string(inode), 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil || to < from {
		return Mapping{}, false
	}
	if bytes.Contains(path, []byte(`\012`)) {
		path = bytes.ReplaceAll(path, []byte(`\012`), []byte("\n"))
	}
	return Mapping{
		Start: from, Size: to - from, Offset: at, Write: perms[1] == 'w', Shared: perms[3] == 's',
		Dev: dev, Inode: ino, Path: path,
	}, true
}
