package top

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLockHolders(t *testing.T) {
	dir := t.TempDir()
	var files []string
	var lines string
	for i, kind := range []string{"FLOCK ", "POSIX ", "FLOCK ", "OFDLCK"} {
		path := filepath.Join(dir, fmt.Sprint(i))
		must(t, os.WriteFile(path, nil, 0o600))
		file, ok := inodeOf(path)
		if !ok {
			t.Fatal(path)
		}
		lines += fmt.Sprintf("%d: %s ADVISORY  WRITE %d %02x:%02x:%d 0 EOF\n", i+1, kind, os.Getpid(), file.major, file.minor, file.ino)
		files = append(files, path)
	}
	list := filepath.Join(dir, "locks")
	must(t, os.WriteFile(list, []byte("9: FLOCK\n7: -> FLOCK  ADVISORY  WRITE x y z\n8: FLOCK  ADVISORY  WRITE 1 zz:1 0 EOF\n"+lines), 0o600))
	got := lockHolders(list, append(files, filepath.Join(dir, "missing")))
	me := Lock{PID: os.Getpid(), Name: program(os.Getpid())}
	if diff := cmp.Diff(map[string]Lock{files[0]: me, files[2]: me}, got); diff != "" {
		t.Error(diff)
	}
	if got := lockHolders(filepath.Join(dir, "missing"), files); len(got) != 0 {
		t.Errorf("without a list: %v", got)
	}
	if name := program(1 << 30); name != "" {
		t.Errorf("no process is called %q", name)
	}
}
