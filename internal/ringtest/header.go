// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringtest

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

// HeaderSize is the size of a ring's header, in all layouts except V5.
const HeaderSize = 40

// Header is a ring's header, with the fields in the order of all layouts except V5.
type Header struct {
	WritePos, ReadPos        uint64
	Version, ExpectedVersion int32
	Capacity, Mask           uint64
}

// padded is the header of layout V5, up to its last field.
type padded struct {
	WritePos, Capacity uint64
	Version            int32
	_                  int32
	Mask               uint64
	_                  [224]byte
	ReadPos            uint64
}

const paddedVersion = 5

// NewHeader returns the header of an empty ring.
func NewHeader(version int32, capacity uint64) Header {
	return Header{Version: version, ExpectedVersion: version, Capacity: capacity, Mask: capacity - 1}
}

// Bytes returns the encoded header.
func (h Header) Bytes() []byte {
	return encode(h)
}

func (h Header) padded() []byte {
	return encode(padded{WritePos: h.WritePos, Capacity: h.Capacity, Version: h.Version, Mask: h.Mask, ReadPos: h.ReadPos})
}

func encode(fields any) []byte {
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, fields); err != nil {
		panic(err) // the fields have fixed sizes
	}
	return b.Bytes()
}

// Make writes a ring file with the given number of zero bytes after the header, which
// needn't match the header.
func Make(tb testing.TB, path string, h Header, slots int) string {
	tb.Helper()
	must.OK(tb, os.WriteFile(path, append(h.Bytes(), make([]byte, slots)...), 0o600))
	return path
}

// ReadHeader reads the header of the file at path, of any layout.
func ReadHeader(tb testing.TB, path string) (h Header) {
	tb.Helper()
	f, err := os.Open(path)
	must.OK(tb, err)
	defer f.Close()
	must.OK(tb, binary.Read(f, binary.LittleEndian, &h))
	if h.Version != paddedVersion {
		return h
	}
	var p padded
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		tb.Fatal(err)
	}
	must.OK(tb, binary.Read(f, binary.LittleEndian, &p))
	return Header{WritePos: p.WritePos, ReadPos: p.ReadPos, Version: p.Version, Capacity: p.Capacity, Mask: p.Mask}
}

// Edit changes the header of the file at path in place, like another process. Processes
// that have mapped the file see the change immediately.
func Edit(tb testing.TB, path string, change func(*Header)) {
	tb.Helper()
	h := ReadHeader(tb, path)
	layout := h.Version
	change(&h)
	text := h.Bytes()
	if layout == paddedVersion {
		text = h.padded()
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must.OK(tb, err)
	defer f.Close()
	if _, err := f.WriteAt(text, 0); err != nil {
		tb.Fatal(err)
	}
}
