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
	folder *Folder
}

func newOptions(list []Option) (o options) {
	for _, option := range list {
		option.apply(&o)
	}
	return o
}

// OwnedBy lets only rings be opened whose file belongs to one of some uids.
// Without it, or with none, any owner will do. A ring of another owner is an
// [OwnerError].
func OwnedBy(uids ...uint32) Option {
	return optionFunc(func(o *options) { o.owners = uids })
}

// In has the ring looked for among the entries of a folder, by the last element
// of its path. The rest of the path only says in errors where that was.
func In(f *Folder) Option {
	return optionFunc(func(o *options) { o.folder = f })
}

// check says whether a file of an owner may be opened.
func (o options) check(owner uint32) error {
	if len(o.owners) > 0 && !slices.Contains(o.owners, owner) {
		return &OwnerError{Owner: owner}
	}
	return nil
}
