// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// published returns the memory of a process that publishes attributes at an address.
func published(at, payloadAt uint64, payload []byte) []byte {
	memory := make([]byte, max(at+contextHeader, payloadAt+uint64(len(payload))))
	header := memory[at:]
	copy(header, contextSignature)
	binary.NativeEndian.PutUint32(header[8:], contextVersion)
	binary.NativeEndian.PutUint32(header[12:], uint32(len(payload)))
	binary.NativeEndian.PutUint64(header[16:], 1)
	binary.NativeEndian.PutUint64(header[24:], payloadAt)
	copy(memory[payloadAt:], payload)
	return memory
}

// encode returns a payload with attributes.
func encode(pairs ...[2]string) []byte {
	field := func(number byte, b []byte) []byte {
		return append(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(b))), b...)
	}
	var resource []byte
	for _, p := range pairs {
		resource = append(resource, field(1, append(field(1, []byte(p[0])), field(2, field(1, []byte(p[1])))...))...)
	}
	return field(1, append(resource, 2<<3, 0)) // no dropped attributes
}

func TestResourceOfAnSDKTakesPrecedenceOverTheEnvironment(t *testing.T) {
	for name, c := range map[string]struct {
		mapping string
		payload []byte
		keep    []string
		want    map[string]string
	}{
		"memfd": {
			"/memfd:OTEL_CTX (deleted)", encode([2]string{"service.name", "decode"}, [2]string{"service.version", "2"}),
			[]string{"service.*"},
			map[string]string{"service.name": "decode", "service.version": "2", "service.namespace": "env"},
		},
		"named memfd":  {"[anon_shmem:OTEL_CTX]", encode([2]string{"service.name", "decode"}), []string{"service.name"}, map[string]string{"service.name": "decode"}},
		"named memory": {"[anon:OTEL_CTX]", encode([2]string{"service.name", "decode"}), []string{"service.name"}, map[string]string{"service.name": "decode"}},
		"default name": {"[anon:OTEL_CTX]", encode([2]string{"service.name", "unknown_service:python"}), []string{"service.name"}, map[string]string{"service.name": "env"}},
		"another name": {"/memfd:OTEL_CTX_OLD", encode([2]string{"service.name", "decode"}), []string{"service.name"}, map[string]string{"service.name": "env"}},
		"reserved key": {
			"[anon:OTEL_CTX]", encode([2]string{"k8s.pod.uid", "x"}, [2]string{"le", "x"}, [2]string{"team", strings.Repeat("x", MaxAttribute+1)}),
			[]string{"*"},
			map[string]string{"service.name": "env", "service.namespace": "env"},
		},
		"nothing is taken": {"[anon:OTEL_CTX]", encode([2]string{"service.name", "decode"}), nil, map[string]string{"service.name": "env"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.setProcess(task{
				pid: 7, environ: enabled + "OTEL_SERVICE_NAME=env\x00OTEL_RESOURCE_ATTRIBUTES=service.namespace=env\x00",
				maps: "7f00-8000 rw-p 00000000 00:00 0      " + c.mapping + "\n",
			})
			h.write(h.path(7, "mem"), string(published(0x7f00, 0x10, c.payload)))
			s := New(Config{Proc: h.proc, Attributes: c.keep})
			found := h.scan(s, 0)
			if len(found) != 1 {
				t.Fatalf("found = %+v", found)
			}
			if d := cmp.Diff(c.want, found[0].Attributes); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			if p, err := s.Examine(7); err != nil || !maps.Equal(p.Attributes, c.want) {
				t.Errorf("Examine: %v, %v", p.Attributes, err)
			}
		})
	}
}

// changing is memory that changes after each read.
type changing struct {
	memory []byte
	change func(memory []byte)
}

func (c changing) ReadAt(b []byte, at int64) (int, error) {
	defer c.change(c.memory)
	return bytes.NewReader(c.memory).ReadAt(b, at)
}

func TestContextThatIsBeingUpdatedIsReadAgain(t *testing.T) {
	memory := published(0, contextHeader, encode([2]string{"team", "a"}))
	updates := 0
	payload, err := readContext(changing{memory, func(m []byte) {
		if updates++; updates == 1 { // between the header and the payload
			copy(m, published(0, contextHeader, encode([2]string{"team", "b"})))
			m[16] = 2
		}
	}}, 0)
	if got := newFilter([]string{"*"}, nil).context(payload); err != nil || got["team"] != "b" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := readContext(changing{memory, func(m []byte) { m[16]++ }}, 0); !errors.Is(err, errUpdating) {
		t.Errorf("error is %v", err)
	}
	clear(memory[16:24])
	if _, err := readContext(bytes.NewReader(memory), 0); !errors.Is(err, errUpdating) {
		t.Errorf("error is %v", err)
	}
}

func TestInvalidContextsAreIgnored(t *testing.T) {
	for name, change := range map[string]func(m []byte){
		"signature": func(m []byte) { m[0] = 'o' },
		"version":   func(m []byte) { m[8] = 1 },
		"size":      func(m []byte) { binary.NativeEndian.PutUint32(m[12:], maxContext+1) },
		"address":   func(m []byte) { binary.NativeEndian.PutUint64(m[24:], 1<<63) },
		"unmapped":  func(m []byte) { binary.NativeEndian.PutUint64(m[24:], 1<<40) },
	} {
		memory := append(published(0, contextHeader, encode([2]string{"team", "a"})), make([]byte, maxContext)...)
		change(memory)
		if payload, err := readContext(bytes.NewReader(memory), 0); err == nil || errors.Is(err, errUpdating) {
			t.Errorf("%s: %q, error is %v", name, payload, err)
		}
	}
}

// The kernel must name the mapping as expected.
func TestContextOfARealProcessIsFound(t *testing.T) {
	fd, err := unix.MemfdCreate("OTEL_CTX", unix.MFD_CLOEXEC)
	if err != nil {
		t.Skip(err)
	}
	size := os.Getpagesize()
	must.OK(t, unix.Ftruncate(fd, int64(size)))
	mapping, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	must.OK(t, err)
	defer func() { _ = unix.Munmap(mapping) }()
	must.OK(t, unix.Close(fd))

	mappings, err := os.Open("/proc/self/maps")
	must.OK(t, err)
	defer mappings.Close()
	var found usage
	must.OK(t, ReadMaps(mappings, func(m Mapping) bool { found.add(m, "/"); return true }))
	if len(found.contexts) != 1 {
		t.Fatalf("contexts %x", found.contexts)
	}
	payload := encode([2]string{"team", "a"})
	copy(mapping, published(0, contextHeader, payload))
	binary.NativeEndian.PutUint64(mapping[24:], found.contexts[0]+contextHeader)
	mem, err := os.Open("/proc/self/mem")
	must.OK(t, err)
	defer mem.Close()
	if got, err := readContext(mem, found.contexts[0]); err != nil || !bytes.Equal(got, payload) {
		t.Errorf("%q, %v", got, err)
	}
}

func FuzzContext(f *testing.F) {
	f.Add(encode([2]string{"service.name", "a"}, [2]string{"a.b", "c"}), "team", "x")
	f.Add(published(0, contextHeader, encode([2]string{"a", "b"})), "a_b", "")
	f.Add([]byte{1<<3 | 1, 0, 2<<3 | 5, 3<<3 | 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, "k", "v")
	all := newFilter([]string{"*"}, nil)
	f.Fuzz(func(t *testing.T, b []byte, key, value string) {
		size, labels := 0, make(map[string]bool)
		for key, value := range merge(all.context(b), all.attributes(string(b), key)) {
			size += len(key) + len(value)
			if l := Label(key); key != semconv.ServiceName && all.reserved[l] || labels[l] || !isValid(key) || !isValid(value) {
				t.Errorf("attribute %q: %q", key, value)
			}
			labels[Label(key)] = true
		}
		if size > MaxAttributeBytes {
			t.Errorf("attributes have %d bytes", size)
		}
		if payload, err := readContext(bytes.NewReader(b), uint64(len(key))); err == nil && len(payload) > maxContext {
			t.Errorf("%d bytes", len(payload))
		}
		payload, err := readContext(bytes.NewReader(published(8, 40, encode([2]string{key, value}))), 8)
		if len(key)+len(value) > maxContext/2 {
			return
		}
		must.OK(t, err)
		got, ok := all.context(payload)[key]
		want := isValid(key) && value != "" && isValid(value) && all.allows(key) &&
			(key != semconv.ServiceName || !strings.HasPrefix(value, "unknown_service"))
		if ok != want || got != value && want {
			t.Errorf("%q: %q is %q, %v", key, value, got, ok)
		}
	})
}
