//go:build linux && (amd64 || arm64)

package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// outside is a ring in a directory of its own, with 5 events that nobody is to
// take.
func outside(t *testing.T) *ringbuf.Writer {
	t.Helper()
	victim, err := ringbuf.Create(filepath.Join(t.TempDir(), "agent"), ringbuf.V4, 16)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n, _ := victim.Len(); n != 5 {
			t.Errorf("a ring outside of the directory was consumed: %d of 5 events are left", n)
		}
		_ = victim.Close()
	})
	push(t, victim, 5)
	return victim
}

// A neighbor puts a link in the place of a folder whose file is to be tried
// again, or whose ring is open.
func TestFolderThatBecomesALinkLeadsNowhere(t *testing.T) {
	for name, before := range map[string]func(t *testing.T, x *world){
		"a file to be tried again": func(t *testing.T, x *world) { touch(t, filepath.Join(x.dir, "sub", "agent"), "") },
		"an open ring":             func(_ *testing.T, x *world) { x.ring("sub/agent", ringbuf.V4, 16) },
	} {
		t.Run(name, func(t *testing.T) {
			x, victim := newWorld(t), outside(t)
			sub := filepath.Join(x.dir, "sub")
			if err := os.Mkdir(sub, 0o750); err != nil {
				t.Fatal(err)
			}
			before(t, x)
			w := x.watcher(func(c *Config) { c.Include = []string{"**"} })
			w.Scan()
			if err := os.Rename(sub, filepath.Join(t.TempDir(), "away")); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Dir(victim.Path()), sub); err != nil {
				t.Fatal(err)
			}
			x.pass(time.Second)
			w.retry()
			w.lookAt(filepath.Join(sub, "agent"))
			w.Scan()
			w.Drain()
		})
	}
}

// A neighbor puts a FIFO, or a link, in the place of folders that the scan has
// seen in a directory and comes to next.
func TestFolderThatIsNoneAnyMoreEndsNoScan(t *testing.T) {
	for name, put := range map[string]func(path, elsewhere string) error{
		"FIFO": func(path, _ string) error { return syscall.Mkfifo(path, 0o600) },
		"link": func(path, elsewhere string) error { return os.Symlink(elsewhere, path) },
	} {
		t.Run(name, func(t *testing.T) {
			x, victim := newWorld(t), outside(t)
			const folders = 50 // of which one at least comes after a file
			folder := func(i int) string { return filepath.Join(x.dir, fmt.Sprint("folder-", i)) }
			for i := range folders {
				touch(t, filepath.Join(x.dir, fmt.Sprint("file-", i)), "no ring")
				if err := os.Mkdir(folder(i), 0o750); err != nil {
					t.Fatal(err)
				}
			}
			var once sync.Once
			replace := func() {
				for i := range folders {
					if err := os.Remove(folder(i)); err != nil {
						t.Error(err)
					}
					if err := put(folder(i), filepath.Dir(victim.Path())); err != nil {
						t.Error(err)
					}
				}
			}
			w := x.watcher(func(c *Config) {
				c.Include = []string{"**"}
				c.Now = func() time.Time {
					once.Do(replace)
					return x.clock()
				}
			})
			w.Scan()
			w.Drain()
		})
	}
}
