// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package files

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// Opening another file can block, or have side effects. The error says what it is.
func TestOnlyRegularFilesAreOpened(t *testing.T) {
	dir := tree(t)
	socket, err := net.Listen("unix", filepath.Join(dir, "socket")) //nolint:noctx // it only exists
	must.OK(t, err)
	defer socket.Close()
	must.OK(t, os.WriteFile(filepath.Join(dir, "recorded"), nil, 0o555))
	before := openFiles()
	for path, want := range map[string]struct {
		read, write, create string // errors
	}{
		filepath.Join(dir, "file"):     {},
		filepath.Join(dir, "link"):     {"symbolic link; links are not followed", "symbolic link", "too many levels"},
		filepath.Join(dir, "sub"):      {"it is a directory", "it is a directory", "is a directory"},
		filepath.Join(dir, "fifo"):     {"it is a FIFO", "it is a FIFO", "it is a FIFO"},
		filepath.Join(dir, "socket"):   {"it is a socket", "it is a socket", "no such device"},
		filepath.Join(dir, "recorded"): {"", "gives nobody write permission", ""},
		"/dev/null":                    {"it is a device", "it is a device", "it is a device"},
		filepath.Join(dir, "none"):     {"no such file", "no such file", ""},
	} {
		for _, c := range []struct {
			what string
			open func() (*os.File, error)
			want string
		}{
			{"read", func() (*os.File, error) { return Open(path, os.O_RDONLY) }, want.read},
			{"write", func() (*os.File, error) { return Open(path, os.O_RDWR) }, want.write},
			{"create", func() (*os.File, error) { return Create(path) }, want.create},
		} {
			if c.what == "create" && strings.HasSuffix(path, "recorded") && os.Geteuid() != 0 {
				continue // only root may
			}
			f, err := c.open()
			if (err == nil) != (c.want == "") || !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("%s %s: error %v, want %q", c.what, path, err, c.want)
			}
			if strings.Contains(c.want, "it is a") && !errors.Is(err, ErrNotRegular) {
				t.Errorf("%s %s: error %v isn't ErrNotRegular", c.what, path, err)
			}
			if err == nil {
				must.OK(t, f.Close())
			}
		}
	}
	if after := openFiles(); after != before {
		t.Errorf("%d files are open, %d before", after, before)
	}
}

// A thread without root's privileges opens a file, and root one on a file system that is mounted read-only.
func TestFileWithoutPermissionIsNotOpened(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give it up")
	}
	dir, mount := t.TempDir(), t.TempDir()
	private := filepath.Join(dir, "private")
	must.OK(t, errors.Join(os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755), os.WriteFile(private, nil, 0o600)))
	if err := syscall.Mount("none", mount, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("can't mount a tmpfs: %v", err)
	}
	defer func() { _ = syscall.Unmount(mount, syscall.MNT_DETACH) }()
	mounted := filepath.Join(mount, "agent")
	must.OK(t, os.WriteFile(mounted, nil, 0o600))
	must.OK(t, syscall.Mount("none", mount, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	got := make(chan PermissionError)
	ask := func(path string, flag, uid int) PermissionError {
		go func() {
			runtime.LockOSThread() // for good, so the thread ends with the goroutine
			_, _ = unix.SetfsuidRetUid(uid)
			_, err := Open(path, flag)
			denied, _ := errors.AsType[*PermissionError](err)
			got <- *cmp.Or(denied, &PermissionError{Owner: 99})
		}()
		return <-got
	}
	const nobody = 65534
	want := []PermissionError{{}, {Write: true}, {Write: true, ReadOnly: true}}
	if diff := gocmp.Diff(want, []PermissionError{ask(private, os.O_RDONLY, nobody), ask(private, os.O_RDWR, nobody), ask(mounted, os.O_RDWR, 0)}); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}

func TestPermissionErrorStatesCauseAndRemedy(t *testing.T) {
	for want, err := range map[string]*PermissionError{
		"read-only file system; consuming writes to the ring, so mount it writable": {Owner: 1, UID: 2, Write: true, ReadOnly: true},
		"so run chmod u+w on it": {Owner: 1, UID: 2, Write: true, Protected: true},
		"to read: the file belongs to uid 1, this process runs as uid 2; run as uid 1 or root":                                     {Owner: 1, UID: 2},
		"to consume: the ring belongs to uid 1, this process runs as uid 2; consuming writes to the ring, so run as uid 1 or root": {Owner: 1, UID: 2, Write: true},
	} {
		if !strings.Contains(err.Error(), want) || !errors.Is(err, fs.ErrPermission) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
}

func TestInfoIsThatOfTheSystem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent")
	must.OK(t, os.WriteFile(path, []byte("ring"), 0o600))
	must.OK(t, os.Chmod(path, 0o640)) // whatever the umask
	modified := time.Unix(1e9, 7)
	must.OK(t, os.Chtimes(path, modified, modified))
	dir, err := OpenDir(filepath.Dir(path), ".")
	must.OK(t, err)
	info, err := os.Stat(path)
	must.OK(t, err)
	want := Info{ID: IDOf(info), Mode: syscall.S_IFREG | 0o640, Owner: uint32(os.Getuid()), Size: 4, ModTime: modified}
	one, err1 := Stat(path)
	two, err2 := dir.Lstat("agent")
	must.OK(t, errors.Join(err1, err2))
	if diff := gocmp.Diff([]Info{want, want}, []Info{one, two}); diff != "" {
		t.Errorf("info of the file (-want +got):\n%s", diff)
	}
	itself, err1 := dir.Stat()
	again, err2 := Stat(filepath.Dir(path))
	if err := errors.Join(err1, err2); err != nil || itself != again || !itself.IsDir() {
		t.Errorf("info of the directory is %+v and %+v, %v", itself, again, err)
	}
	if _, err := Stat(path + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("info of a missing file: %v", err)
	}
	must.OK(t, dir.Close())
	if _, err := dir.Stat(); err == nil {
		t.Error("a closed directory has info")
	}
}

// Of consumers, one has the lock. Nobody holds it after a look.
func TestFileIsLockedByOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent")
	open := func() *os.File {
		f, err := Create(path)
		must.OK(t, err)
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	one, other := open(), open()
	expect := func(want bool) {
		t.Helper()
		if locked, err := IsLocked(other); locked != want || err != nil {
			t.Errorf("locked %v, %v, want %v", locked, err, want)
		}
	}
	expect(false)
	must.OK(t, Lock(one))
	expect(true)
	if err := Lock(other); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "lslocks") {
		t.Errorf("the other lock: %v", err)
	}
	must.OK(t, one.Close())
	expect(false)
	must.OK(t, Lock(other))
	if err := Lock(one); !errors.Is(err, os.ErrClosed) && !errors.Is(err, syscall.EBADF) {
		t.Errorf("the lock of a closed file: %v", err)
	}
	if _, err := IsLocked(one); err == nil {
		t.Error("a closed file isn't locked")
	}
}

// A file of an image is in a lower layer, whose file system may be any. On ramfs, files have no attributes either.
func TestFileInALowerLayerThatMayNotBeLocalIsNotObserved(t *testing.T) {
	for kind, local := range map[string]bool{"tmpfs": true, "ramfs": false} {
		lower, upper, merged := t.TempDir(), t.TempDir(), t.TempDir()
		mount := func(kind, at, options string) {
			t.Helper()
			if err := syscall.Mount("none", at, kind, 0, options); err != nil {
				t.Skipf("%s can't be mounted: %v", kind, err)
			}
			t.Cleanup(func() { _ = syscall.Unmount(at, syscall.MNT_DETACH) })
		}
		mount(kind, lower, "")
		mount("tmpfs", upper, "")
		must.OK(t, os.WriteFile(lower+"/ring", nil, 0o600))
		for _, dir := range []string{"/upper", "/work"} {
			must.OK(t, os.Mkdir(upper+dir, 0o700))
		}
		mount("overlay", merged, "lowerdir="+lower+",upperdir="+upper+"/upper,workdir="+upper+"/work")
		for _, copied := range []bool{false, true} { // opening it for writing copies it to the upper layer
			f, err := os.OpenFile(merged+"/ring", map[bool]int{false: os.O_RDONLY, true: os.O_RDWR}[copied], 0)
			must.OK(t, err)
			inMemory, err := CheckLocal(f, copied)
			if refused := errors.Is(err, ErrFileSystem); refused == (local || copied) || !refused && !inMemory {
				t.Errorf("%s, copied %t: in memory %t, error %v", kind, copied, inMemory, err)
			}
			must.OK(t, f.Close())
		}
	}
}

// Pages of files that another machine or process serves may never arrive.
func TestFileSystemsThatCanHangAreRefused(t *testing.T) {
	memory, _ := os.MkdirTemp("/dev/shm", "files-test-") //nolint:usetesting // on tmpfs
	defer func() { _ = os.RemoveAll(memory) }()
	ram := t.TempDir()
	if err := syscall.Mount("none", ram, "ramfs", 0, ""); err != nil {
		t.Logf("ramfs isn't tested: %v", err)
		ram = ""
	} else {
		defer func() { _ = syscall.Unmount(ram, syscall.MNT_DETACH) }()
	}
	for dir, want := range map[string]string{
		memory: "in memory true, <nil>", t.TempDir(): "in memory false, <nil>",
		ram:          "in memory false, unsupported file system: ramfs allocates memory without limit; set NIXL_TELEMETRY_DIR",
		"/proc/self": "in memory false, unsupported file system: 0x9fa0 can block this process forever",
	} {
		if dir == "" {
			continue
		}
		f, err := os.OpenFile(filepath.Join(dir, "stat"), os.O_RDONLY|os.O_CREATE, 0o600)
		must.OK(t, err)
		inMemory, err := CheckLocal(f, false)
		if got := fmt.Sprintf("in memory %v, %v", inMemory, err); !strings.HasPrefix(got, want) || err != nil && !errors.Is(err, ErrFileSystem) {
			t.Errorf("%s: %s, want %s", dir, got, want)
		}
		must.OK(t, f.Close())
		if _, err := CheckLocal(f, false); err == nil {
			t.Error("the file system of a closed file is known")
		}
	}
	for dir, want := range map[string]bool{memory: false, "/proc/self": true} {
		if d, err := OpenDir(dir, "."); err == nil {
			if d.OnDisk() != want {
				t.Errorf("%s is on a disk: %v", dir, !want)
			}
			must.OK(t, d.Close())
		}
	}
}

// openFiles returns the number of files that this process has open; 0 if it can't be known.
func openFiles() int {
	list, _ := os.ReadDir("/proc/self/fd")
	return len(list)
}
