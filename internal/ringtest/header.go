package ringtest

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"
)

// HeaderSize is where a ring's slots begin.
const HeaderSize = 40

// Header is a ring's header, field by field as it stands in the file.
type Header struct {
	WritePos, ReadPos        uint64
	Version, ExpectedVersion int32
	Capacity, Mask           uint64
}

// NewHeader is the header of an empty ring.
func NewHeader(version int32, capacity uint64) Header {
	return Header{Version: version, ExpectedVersion: version, Capacity: capacity, Mask: capacity - 1}
}

// Bytes is the header as it stands in the file.
func (h Header) Bytes() []byte {
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, h); err != nil {
		panic(err) // the fields have fixed sizes
	}
	return b.Bytes()
}

// Make writes a ring file whose slots are zero, and need not be one that fits
// its header.
func Make(tb testing.TB, path string, h Header, slots int) string {
	tb.Helper()
	if err := os.WriteFile(path, append(h.Bytes(), make([]byte, slots)...), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// ReadHeader reads the header of the file at path.
func ReadHeader(tb testing.TB, path string) (h Header) {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	if err := binary.Read(f, binary.LittleEndian, &h); err != nil {
		tb.Fatal(err)
	}
	return h
}

// Edit changes the header of the file at path, in place, as another process
// would: whoever has mapped the file sees it at once.
func Edit(tb testing.TB, path string, change func(*Header)) {
	tb.Helper()
	h := ReadHeader(tb, path)
	change(&h)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(h.Bytes(), 0); err != nil {
		tb.Fatal(err)
	}
}
