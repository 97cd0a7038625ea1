package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// identity is what tells a file from others, and whose it is.
func identity(info fs.FileInfo, path string) (id fileID, uid, gid uint32) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{path: path}, 0, 0
	}
	// As glibc's makedev has it.
	major := st.Dev>>8&0xfff | st.Dev>>32&^0xfff
	minor := st.Dev&0xff | st.Dev>>12&^0xff
	return fileID{device: fmt.Sprintf("%02x:%02x", major, minor), inode: st.Ino, path: path}, st.Uid, st.Gid
}

// ended says whether an error means that a process has ended meanwhile.
func ended(err error) bool { return errors.Is(err, syscall.ESRCH) }
