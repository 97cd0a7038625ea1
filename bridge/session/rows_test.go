package session

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadRowsOfRealSessions(t *testing.T) {
	for _, name := range upstream {
		var got []Row
		if err := ReadRows(upstreamPath(name+".csv"), func(r Row) { got = append(got, r) }); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(rowsOf(t, read(t, upstreamPath(name+".csv"))), got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestReadRowsOfNoSession(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.csv")
	write(t, path, "hello")
	if err := ReadRows(path, func(Row) {}); !errors.Is(err, ErrFormat) {
		t.Error(err)
	}
	if err := ReadRows(filepath.Join(dir, "missing.csv"), func(Row) {}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
