// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"errors"
	"io"
	"sync"
)

// lineSize limits the length of a variable and of a mapping. The path of a mapping has
// 4,095 bytes at most.
const lineSize = 16 << 10

var lines = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, lineSize) }}

// newLines returns a pooled buffer, so that reading a file doesn't allocate memory.
func newLines(r io.Reader) *bufio.Reader {
	b, _ := lines.Get().(*bufio.Reader)
	b.Reset(r)
	return b
}

func freeLines(b *bufio.Reader) {
	b.Reset(nil)
	lines.Put(b)
}

// skip discards everything up to a delimiter.
func skip(b *bufio.Reader, delimiter byte) error {
	for {
		if _, err := b.ReadSlice(delimiter); !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
