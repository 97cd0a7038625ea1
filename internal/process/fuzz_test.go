// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// FuzzCgroup checks that the path below a container's cgroup has no effect.
func FuzzCgroup(f *testing.F) {
	const (
		uid = "2d51509a-fcf0-41cc-b535-57cfeeaf73d1"
		id  = "0853fad78812e955b92d871d8d597d9bc598e34320c9edbfab0a73eacf150145"
	)
	for _, below := range []string{"", "/", "/kubepods/pod" + uid + "/" + id, ":cri-containerd:" + id, "\n0::/kubepods/pod" + uid, " (deleted)", "/../.."} {
		f.Add("0::/docker/"+id, below)
	}
	pods := regexp.MustCompile(`^(|[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$`)
	containers := regexp.MustCompile(`^(|[0-9a-f]{64})$`)
	f.Fuzz(func(t *testing.T, list, below string) {
		pod, container := ParseCgroup([]byte(list))
		if !pods.MatchString(pod) || !containers.MatchString(container) {
			t.Errorf("pod %q, container %q", pod, container)
		}
		pod, container = ParseCgroup([]byte("0::/kubepods/pod" + uid + "/" + id + "/" + below))
		if pod != uid || container != id {
			t.Errorf("pod %q, container %q below a container", pod, container)
		}
	})
}

func FuzzStat(f *testing.F) {
	f.Add([]byte("1 (cat) S 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23"), ") (")
	f.Add([]byte(""), "a) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 (")
	f.Fuzz(func(t *testing.T, b []byte, name string) {
		_, _ = ParseStat(b)
		_ = nsPID(b)
		s, ok := ParseStat([]byte("1 (" + name + ") S 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n"))
		if want := (Stat{Parent: 2, Start: 20}); !ok || s != want {
			t.Errorf("%+v, %v", s, ok)
		}
	})
}

// FuzzEnviron compares readEnviron with a simple implementation.
func FuzzEnviron(f *testing.F) {
	f.Add([]byte("A=1\x00SECRET=2\x00B=x=y\x00A=3\x00C\x00=\x00"))
	f.Add([]byte("A=" + strings.Repeat("x", lineSize) + "\x00B=1"))
	f.Add(bytes.Repeat([]byte{0}, lineSize+1))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > maxEnviron {
			return
		}
		want := make(map[string]string)
		for entry := range bytes.SplitSeq(b, []byte{0}) {
			name, value, ok := strings.Cut(string(entry), "=")
			_, twice := want[name]
			if ok && !twice && wantedAB[name] > 0 && len(entry) < lineSize && strings.ToValidUTF8(value, "") == value {
				want[name] = value
			}
		}
		got, _, err := readEnviron(bytes.NewReader(b), wantedAB)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%q, %v; want %q", got, err, want)
		}
		for name, value := range want {
			if got[name] != value {
				t.Errorf("%s: %q, want %q", name, got[name], value)
			}
		}
		all := newFilter([]string{"*"}, nil)
		size, labels := 0, make(map[string]bool)
		for key, value := range all.attributes(string(b), string(b)) {
			size += len(key) + len(value)
			if l := Label(key); key != semconv.ServiceName && all.reserved[l] || labels[l] || !isValid(key) || !isValid(value) {
				t.Errorf("attribute %q: %q", key, value)
			}
			labels[Label(key)] = true
		}
		if size > MaxAttributeBytes {
			t.Errorf("attributes have %d bytes", size)
		}
	})
}

// FuzzMaps checks that ReadMaps returns a complete line after arbitrary lines.
func FuzzMaps(f *testing.F) {
	f.Add([]byte("7f0a4c000000-7f0a4c011000 rw-s 00000000 fe:00 5678   /run/nixl/agent\n"), "/a", uint64(9))
	f.Add([]byte("1000-2000 rw-s 0 0:0 0 /"+strings.Repeat("x", lineSize)), "/\\012", uint64(1)<<63)
	f.Fuzz(func(t *testing.T, b []byte, path string, inode uint64) {
		if len(b) > maxMaps/2 || len(path) > 1000 {
			return
		}
		path = "/" + strings.ReplaceAll(path, "\n", "")
		lines := fmt.Appendf(nil, "%s\n1000-5000 rw-s 00003000 fe:01 %d       %s\n", b, inode, path)
		var last file
		if err := ReadMaps(bytes.NewReader(lines), func(m Mapping) bool {
			if m.Path[0] != '/' {
				t.Errorf("path %q", m.Path)
			}
			(&usage{}).add(m, "/")
			(&usage{}).add(m, "/a")
			last = file{m.Size, m.Offset, m.Write, m.Shared, string(m.Dev), m.Inode, string(m.Path)}
			return true
		}); err != nil {
			t.Fatal(err)
		}
		want := file{0x4000, 0x3000, true, true, "fe:01", inode, strings.ReplaceAll(path, `\012`, "\n")}
		if last != want {
			t.Errorf("%+v, want %+v", last, want)
		}
	})
}
