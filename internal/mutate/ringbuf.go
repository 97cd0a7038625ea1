// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

// ringMutations are bugs of the reader.
var ringMutations = []mutation{
	{
		"ringbuf/restart.go", "another version or capacity is a restart",
		"\tif !r.is(r.layout.Version(), r.mask+1) {\n\t\treturn state{}, ErrRestarted",
		"\tif false {\n\t\treturn state{}, ErrRestarted",
	},
	{
		"ringbuf/restart.go", "a position beyond the last slot is loaded again",
		"\tconst tries = 100\n",
		"\tconst tries = 1\n",
	},
	{
		"ringbuf/restart.go", "another read position is a restart or another consumer",
		"\tif s.read != r.committed {\n\t\treturn state{}",
		"\tif false {\n\t\treturn state{}",
	},
	{
		"ringbuf/restart.go", "a write position behind the events that were read is a restart",
		"if s.fill < r.unreturned() {",
		"if false {",
	},
	{
		"ringbuf/restart.go", "a write position one slot behind the events that were read is a restart",
		"if s.fill < r.unreturned() {",
		"if s.fill+1 < r.unreturned() {",
	},
	{
		"ringbuf/restart.go", "a write position of 0 is ambiguous",
		"\tcase s.write != 0:\n\t\tr.since",
		"\tcase true:\n\t\tr.since",
	},
	{
		"ringbuf/restart.go", "at position 0, changed slots show a restart",
		"if !r.sameRun() {\n\t\t\treturn s, ",
		"if false {\n\t\t\treturn s, ",
	},
	{
		"ringbuf/restart.go", "a write position of 0 is believed only after a second",
		"Sub(r.since) < settleTime",
		"Sub(r.since) < 0",
	},
	{
		"ringbuf/restart.go", "a write position of 0 is believed after a second",
		"Sub(r.since) < settleTime",
		"Sub(r.since) < 1000000*settleTime",
	},
	{
		"ringbuf/restart.go", "each ambiguous header must last for a second",
		"\t\tr.since = time.Time{}\n",
		"",
	},
	{
		"ringbuf/restart.go", "a read position of 0 is a restart",
		"if s.read == 0 {\n\t\treturn ErrRestarted",
		"if false {\n\t\treturn ErrRestarted",
	},
	{
		"ringbuf/restart.go", "events that another consumer took are skipped",
		"if !read || r.distance(r.next, to) <= s.pending {",
		"if !read && r.next == r.mask+1 {",
	},
	{
		"ringbuf/restart.go", "a read position that another consumer moved backward skips nothing",
		"if !read || r.distance(r.next, to) <= s.pending {",
		"if read = r.distance(from, to) <= r.unreturned(); !read {",
	},
	{
		"ringbuf/restart.go", "a position of another consumer that is further behind than was committed is one of the next lap",
		"|| uint64(r.distance(to, from)) <= r.moved",
		"|| true",
	},
	{
		"ringbuf/restart.go", "a commit from position 0 takes no slot from an agent that has restarted",
		"\tif !r.sameRun() {\n\t\treturn false",
		"\tif false {\n\t\treturn false",
	},
	{
		"ringbuf/checksum.go", "the slots that were read at position 0 are remembered",
		"\tcase r.committed == 0:\n\t\tif r.next < r.seenTo {",
		"\tcase false:\n\t\tif r.next < r.seenTo {",
	},
	{
		"ringbuf/checksum.go", "the checksum from position 0 covers all slots",
		"if (from != 0 || r.mode == Observe) && r.distance",
		"if r.distance",
	},
	{
		"ringbuf/restart.go", "a commit is a compare-and-swap",
		"return atomic.CompareAndSwapUint64(r.read, r.committed, to), nil",
		"return atomic.CompareAndSwapUint64(r.read, atomic.LoadUint64(r.read), to), nil",
	},
	{
		"ringbuf/reader.go", "an idle ring has the committed read position",
		"(r.mode == Observe || atomic.LoadUint64(r.read) == r.committed) &&",
		"true &&",
	},
	{
		"ringbuf/commit.go", "a commit never stores position 0",
		"keep := position == 0 && r.committed",
		"keep := position == 1 && r.committed",
	},
	{
		"ringbuf/commit.go", "a position is released on request",
		"if r.mode == Consume && r.kept && r.next == 0 {",
		"if r.mode == Observe && r.kept {",
	},
	{
		"ringbuf/reader.go", "the event that is held back counts as committed",
		"if r.kept {",
		"if r.kept && r.mask == 0 {",
	},
}
