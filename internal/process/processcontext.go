// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"math"
	"strings"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// An OpenTelemetry SDK publishes its resource in a mapping named OTEL_CTX (OTEP 4719). The
// mapping starts with
//
//	offset  0  signature  8 bytes
//	        8  version    uint32
//	       12  size       uint32, of the payload
//	       16  published  uint64, a time that changes with each update; 0 during an update
//	       24  payload    uint64, an address
//
// in the byte order of the machine. The payload is a message ProcessContext of protobuf:
//
//	ProcessContext { Resource resource = 1 }
//	Resource       { repeated KeyValue attributes = 1 }
//	KeyValue       { string key = 1; AnyValue value = 2 }
//	AnyValue       { string string_value = 1 }  and other types, which aren't used
const (
	contextSignature = "OTEL_CTX"
	contextVersion   = 2
	contextHeader    = 32
	maxContext       = 64 << 10 // bytes of the payload
	maxContexts      = 4        // mappings of a process that are tried
	contextTries     = 3        // if it is being updated
)

// contextNames are the names of the mapping: of a memfd, of a memfd that has a name as
// memory too, and of anonymous memory.
var contextNames = [][]byte{[]byte("/memfd:OTEL_CTX"), []byte("[anon_shmem:OTEL_CTX]"), []byte("[anon:OTEL_CTX]")}

// isContext reports whether a mapping has the name of a process context.
func isContext(path []byte) bool {
	path = bytes.TrimSuffix(path, []byte(" (deleted)"))
	for _, name := range contextNames {
		if bytes.Equal(path, name) {
			return true
		}
	}
	return false
}

var (
	errNoContext = errors.New("no process context")
	errUpdating  = errors.New("process context is being updated")
)

// readContext returns the payload of the process context at an address.
func readContext(mem io.ReaderAt, at uint64) ([]byte, error) {
	for range contextTries {
		payload, err := tryContext(mem, at)
		if !errors.Is(err, errUpdating) {
			return payload, err
		}
	}
	return nil, errUpdating
}

func tryContext(mem io.ReaderAt, at uint64) ([]byte, error) {
	var before, after [contextHeader]byte
	if err := readMemory(mem, at, before[:]); err != nil {
		return nil, err
	}
	size := binary.NativeEndian.Uint32(before[12:])
	switch {
	case string(before[:8]) != contextSignature, binary.NativeEndian.Uint32(before[8:]) != contextVersion:
		return nil, errNoContext
	case binary.NativeEndian.Uint64(before[16:]) == 0:
		return nil, errUpdating
	case size > maxContext:
		return nil, errNoContext
	}
	payload := make([]byte, size)
	err := readMemory(mem, binary.NativeEndian.Uint64(before[24:]), payload)
	if again := readMemory(mem, at, after[:]); again != nil {
		return nil, again
	}
	if before != after {
		return nil, errUpdating
	}
	return payload, err
}

func readMemory(mem io.ReaderAt, at uint64, b []byte) error {
	if at > math.MaxInt64 {
		return errNoContext
	}
	n, err := mem.ReadAt(b, int64(at))
	if n == len(b) {
		return nil
	}
	return err
}

// context returns the attributes in the payload of a process context, as far as a process
// may set them. Values other than strings are skipped, and so is everything after invalid
// bytes.
func (f filter) context(payload []byte) map[string]string {
	s := newAttributeSet()
	for number, resource := range fields(payload) {
		if number != 1 {
			continue
		}
		for number, pair := range fields(resource) {
			if number != 1 {
				continue
			}
			key, value := stringPair(pair)
			unnamed := key == semconv.ServiceName && strings.HasPrefix(value, "unknown_service")
			if isValid(key) && value != "" && isValid(value) && !unnamed && f.allows(key) {
				s.set(key, value)
			}
		}
	}
	return s.attributes
}

// stringPair returns the key and the string of a KeyValue.
func stringPair(pair []byte) (key, value string) {
	for number, b := range fields(pair) {
		switch number {
		case 1:
			key = string(b)
		case 2:
			for number, text := range fields(b) {
				if number == 1 {
					value = string(text)
				}
			}
		}
	}
	return key, value
}

// fields returns the fields of a message that are strings or messages, until the end of the
// message or until invalid bytes.
func fields(message []byte) iter.Seq2[uint64, []byte] {
	return func(yield func(uint64, []byte) bool) {
		for len(message) > 0 {
			tag, n := binary.Uvarint(message)
			if n <= 0 {
				return
			}
			message = message[n:]
			var size uint64
			switch tag & 7 {
			case 0: // a number
				_, n = binary.Uvarint(message)
				size = uint64(max(n, 0))
			case 1:
				n, size = 1, 8
			case 5:
				n, size = 1, 4
			case 2:
				size, n = binary.Uvarint(message)
				message = message[max(n, 0):]
			default:
				return
			}
			if n <= 0 || size > uint64(len(message)) {
				return
			}
			if tag&7 == 2 && !yield(tag>>3, message[:size]) {
				return
			}
			message = message[size:]
		}
	}
}
