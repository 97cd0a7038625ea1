// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/nixl-otel/nixl-otel/internal/recording"
)

// maxWindow is the memory that decompression looks back, in bytes. Readers refuse files that require
// more.
const maxWindow = 8 << 20

// Compress returns a compressor.
func Compress(out io.Writer) (recording.Compressor, error) {
	return zstd.NewWriter(out, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(recording.Window))
}

// File is a recording that is being read.
type File struct {
	*recording.Reader
	zstd *zstd.Decoder
}

// Read reads the header of a compressed recording. The caller must call [File.Close].
func Read(in io.Reader) (*File, error) {
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	r, err := recording.NewReader(z)
	if err != nil {
		z.Close()
		if errors.Is(err, zstd.ErrMagicMismatch) {
			err = recording.ErrFormat
		}
		return nil, err
	}
	return &File{r, z}, nil
}

// Close releases the memory. It doesn't close the underlying reader.
func (f *File) Close() { f.zstd.Close() }

// Is reports whether the file at a path is a recording, of any version.
func Is(path string) bool {
	// Only open regular files: opening other files may have side effects.
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	in, err := os.Open(path)
	if err != nil {
		return false
	}
	defer in.Close()
	f, err := Read(in)
	if err != nil {
		return errors.Is(err, recording.ErrVersion)
	}
	f.Close()
	return true
}

// Rings returns the names of the rings to which a [Player] replays a recording. If the
// recording is truncated or damaged, it returns the rings up to there.
func Rings(in io.Reader) (names []string, err error) {
	f, err := Read(in)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	used := make(ringNames)
	var rec recording.Record
	for f.Next(&rec) == nil {
		if rec.State == recording.Opened && rec.Agent == len(names) {
			names = append(names, used.add(rec.About.Name))
		}
	}
	return names, nil
}

// ringNames are the names of rings. Agents of several containers may have the same name.
type ringNames map[string]bool

// add returns the name of an agent's ring, which no other ring has.
func (used ringNames) add(name string) string {
	one := name
	for n := 2; used[one]; n++ {
		one = fmt.Sprintf("%s~%d", name, n)
	}
	used[one] = true
	return one
}
