// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Reader reads a recording, record by record.
type Reader struct {
	r    io.Reader
	zstd *zstd.Decoder

	data    []byte // buffer: a compressed frame
	records []byte // buffer: the uncompressed frame
	dec     decoder
	ended   bool
	read    int64
}

// NewReader reads the header of a recording. It returns [ErrFormat], [ErrVersion], or an
// error of reading.
func NewReader(r io.Reader) (*Reader, error) {
	var head [len(magic)]byte
	_, err := io.ReadFull(r, head[:])
	name := magic[:len(magic)-1]
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, ErrFormat
	case err != nil:
		return nil, err
	case !strings.HasPrefix(string(head[:]), name):
		return nil, ErrFormat
	case string(head[:]) != magic:
		return nil, fmt.Errorf("%w (%d): update nixlring", ErrVersion, head[len(name)])
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxFrame))
	if err != nil {
		return nil, err
	}
	return &Reader{r: r, zstd: dec, read: int64(len(magic))}, nil
}

// Next reads the next record into rec. It returns io.EOF at the end of a complete recording,
// [ErrTruncated] at the end of a truncated one, [ErrDamaged], or an error of reading.
func (r *Reader) Next(rec *Record) error {
	for len(r.dec.rest) == 0 {
		if r.ended {
			return io.EOF
		}
		if err := r.frame(); err != nil {
			return err
		}
	}
	if err := r.dec.record(rec); err != nil {
		r.dec.rest, r.ended = nil, true
		return fmt.Errorf("%w before byte %d: %w", ErrDamaged, r.read, err)
	}
	r.ended = rec.Op == OpEnd
	if r.ended && len(r.dec.rest) > 0 {
		return fmt.Errorf("%w: data after the end", ErrDamaged)
	}
	return nil
}

// frame reads and uncompresses the next frame.
func (r *Reader) frame() error {
	var head [frameHeader]byte
	if err := r.full(head[:]); err != nil {
		return err
	}
	size := binary.LittleEndian.Uint32(head[:])
	if size == 0 || size > maxFrame {
		return fmt.Errorf("%w: invalid frame size %d at byte %d", ErrDamaged, size, r.read-frameHeader)
	}
	if cap(r.data) < int(size) {
		r.data = make([]byte, size)
	}
	r.data = r.data[:size]
	if err := r.full(r.data); err != nil {
		return err
	}
	if crc32.Checksum(r.data, castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
		return fmt.Errorf("%w: checksum mismatch in the frame before byte %d", ErrDamaged, r.read)
	}
	var err error
	if r.records, err = r.zstd.DecodeAll(r.data, r.records[:0]); err != nil {
		return fmt.Errorf("%w in the frame before byte %d: %w", ErrDamaged, r.read, err)
	}
	r.dec.begin(r.records)
	return nil
}

// full reads len(b) bytes, or returns ErrTruncated.
func (r *Reader) full(b []byte) error {
	n, err := io.ReadFull(r.r, b)
	r.read += int64(n)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it ends at byte %d; the recording program crashed or is still running", ErrTruncated, r.read)
	}
	return err
}

// Close releases the reader's resources. It doesn't close the underlying reader.
func (r *Reader) Close() { r.zstd.Close() }
