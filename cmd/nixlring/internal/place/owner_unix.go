//go:build unix

package place

import (
	"io/fs"
	"syscall"
)

// Owner is the uid that a file belongs to.
func Owner(info fs.FileInfo) uint32 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Uid
	}
	return 0
}
