// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import "github.com/nixl-otel/nixl-otel/internal/files"

// ID returns the mapped file. It reports false if the device is invalid.
func (m Mapping) ID() (id files.ID, ok bool) {
	dev, ok := device(m.Dev)
	return files.ID{Dev: dev, Ino: m.Inode}, ok
}

// device is the reverse of [files.Device] for the device number of a mapping.
func device(dev []byte) (n uint64, ok bool) {
	var parts [2]uint64
	at := 0
	for _, c := range dev {
		switch {
		case c == ':' && at == 0:
			at = 1
		case c >= '0' && c <= '9':
			parts[at] = parts[at]<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			parts[at] = parts[at]<<4 | uint64(c-'a'+10)
		default:
			return 0, false
		}
	}
	major, minor := parts[0], parts[1]
	return major&0xfff<<8 | major&^uint64(0xfff)<<32 | minor&0xff | minor&^uint64(0xff)<<12, at == 1
}
