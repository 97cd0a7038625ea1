package listing

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// TestForeignBySize is about files whose content says nothing.
func TestForeignBySize(t *testing.T) {
	unreadable := &ringbuf.PermissionError{Owner: 1, UID: 2, Mode: ringbuf.Observe}
	for _, tt := range []struct {
		err     error
		size    int64
		foreign bool
	}{
		{unreadable, 40 + 4096*16, false},
		{unreadable, 40 + 4096*48, false},
		{unreadable, 40 + 4096*56, false},
		{unreadable, 40, true},
		{unreadable, 4096, true},
		{unreadable, 0, true},
		{ringbuf.ErrNotReady, 40 + 12*16, false},
		{ringbuf.ErrNotReady, 4096, true},
		{ringbuf.ErrNotReady, 0, false}, // made just now
		{ringbuf.ErrInvalid, 4096, false},
		{ringbuf.ErrNotRing, 40 + 4096*16, true},
		{ringbuf.ErrNotRegular, 40 + 4096*16, true},
		{&ringbuf.UnknownVersionError{Version: 5}, 4096, false},
	} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, tt.size); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := foreign(fmt.Errorf("open ring: %w", tt.err), info); got != tt.foreign {
			t.Errorf("%d bytes, %v: foreign %v", tt.size, tt.err, got)
		}
	}
}
