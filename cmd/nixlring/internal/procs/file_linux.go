// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// FileOf identifies the file at a path as in /proc.
func FileOf(path string) (File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return File{}, err
	}
	f, err := absolute(path)
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		// The format of device numbers is that of makedev(3).
		major := st.Dev>>8&0xfff | st.Dev>>32&^0xfff
		minor := st.Dev&0xff | st.Dev>>12&^0xff
		f.Device, f.Inode = fmt.Sprintf("%02x:%02x", major, minor), st.Ino
	}
	return f, err
}

// exited reports whether an error means that a process has exited in the meantime.
func exited(err error) bool { return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) }
