//go:build unix

package listing

import (
	"io/fs"
	"syscall"
)

// owner is the uid that a file belongs to.
func owner(info fs.FileInfo) uint32 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Uid
	}
	return 0
}
