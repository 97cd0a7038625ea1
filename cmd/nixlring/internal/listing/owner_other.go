//go:build !unix

package listing

import "io/fs"

// owner is nobody in particular where files don't belong to uids.
func owner(fs.FileInfo) uint32 { return 0 }
