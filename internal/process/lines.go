// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"errors"
	"io"
	"sync"
)

// lineSize limits a variable and a mapping. The path in a mapping may have 4,095
// bytes.
const lineSize = 16 << 10

var lines = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, lineSize) }}

// newLines returns a buffer from which the parts of a file can be read without
// allocating any of them.
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

func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// counter counts what is read.
type counter struct {
	r io.Reader
	n int
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += n
	return n, err
}
