// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import "slices"

// Option changes how a ring is opened.
type Option interface{ apply(*options) }

type optionFunc func(*options)

func (f optionFunc) apply(o *options) { f(o) }

type options struct {
	owners []uint32
	dir    *Dir
	holder func(FileID) (pid int)
}

func newOptions(list []Option) (o options) {
	for _, option := range list {
		option.apply(&o)
	}
	return o
}

// OwnedBy restricts the owners of a ring's file to the given uids. Other owners
// result in an [OwnerError]. Without this option, or without uids, any owner is
// allowed.
func OwnedBy(uids ...uint32) Option {
	return optionFunc(func(o *options) { o.owners = uids })
}

// LockedBy sets the function that finds the process of a [LockedError]. It returns 0 if
// the process is unknown. By default, each error reads /proc/locks, which takes long if
// there are many locks.
func LockedBy(holder func(FileID) (pid int)) Option {
	return optionFunc(func(o *options) { o.holder = holder })
}

// In opens the ring as an entry of a directory, named by the last element of its
// path. The rest of the path appears only in errors.
func In(f *Dir) Option {
	return optionFunc(func(o *options) { o.dir = f })
}

// check returns an error if files of this owner must not be opened.
func (o options) check(owner uint32) error {
	if len(o.owners) > 0 && !slices.Contains(o.owners, owner) {
		return &OwnerError{Owner: owner}
	}
	return nil
}
