//go:build !linux

package inspect

import "io/fs"

// identity is nothing where there are no rings.
func identity(_ fs.FileInfo, path string) (id fileID, uid, gid uint32) {
	return fileID{path: path}, 0, 0
}

// ended says whether an error means that a process has ended meanwhile.
func ended(error) bool { return false }
